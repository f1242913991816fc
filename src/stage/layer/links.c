/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/layer/links.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

enum { CAPACITY_FIRST = 64 };

void links_done(struct links *links)
{
	free(links->entries);
	*links = (struct links){ 0 };
}

static bool is_same(const struct links_entry *a, const struct links_entry *b)
{
	return a->device == b->device && a->inode == b->inode && a->tree == b->tree;
}

/* The entry of this file, or the empty one where it belongs. */
static struct links_entry *find(const struct links *links, const struct links_entry *wanted)
{
	uint64_t hash = (wanted->inode * 0x9e3779b97f4a7c15u) ^ (wanted->device * 0xc2b2ae3d27d4eb4fu) ^ wanted->tree;

	for (size_t at = (size_t)(hash ^ hash >> 29);; at++) {
		struct links_entry *entry = &links->entries[at & (links->capacity - 1)];

		if (!entry->slot_plus_one || is_same(entry, wanted))
			return entry;
	}
}

static int grow(struct links *links)
{
	struct links bigger = { .capacity = links->capacity ? links->capacity * 2 : CAPACITY_FIRST };

	bigger.entries = calloc(bigger.capacity, sizeof *bigger.entries);
	if (!bigger.entries)
		return -ENOMEM;
	for (size_t i = 0; i < links->capacity; i++)
		if (links->entries[i].slot_plus_one)
			*find(&bigger, &links->entries[i]) = links->entries[i];
	bigger.count = links->count;
	links_done(links);
	*links = bigger;
	return 0;
}

int links_find_or_put(struct links *links, uint32_t tree, uint64_t device, uint64_t inode, uint32_t slot,
		      uint32_t *ret_slot)
{
	struct links_entry wanted = { .device = device, .inode = inode, .tree = tree, .slot_plus_one = slot + 1 };
	struct links_entry *entry;
	int r = links->count * 2 >= links->capacity ? grow(links) : 0;

	if (r < 0)
		return r;
	entry = find(links, &wanted);
	if (entry->slot_plus_one) {
		*ret_slot = entry->slot_plus_one - 1;
		return 1;
	}
	*entry = wanted;
	links->count++;
	return 0;
}
