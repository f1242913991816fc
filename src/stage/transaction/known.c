/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/transaction/known.h"

#include <errno.h>
#include <stdlib.h>

enum { CAPACITY_FIRST = 64 };

void known_done(struct known *known)
{
	free(known->entries);
	*known = (struct known){ 0 };
}

/* Its place, or the empty one where it would be. */
static struct known_entry *find(const struct known *known, const struct known_entry *wanted)
{
	uint64_t hash = wanted->inode * 0x9e3779b97f4a7c15u;

	hash ^= ((uint64_t)wanted->ctime.seconds << 30 ^ wanted->ctime.ns) * 0xc2b2ae3d27d4eb4fu;
	hash ^= wanted->tree_plus_one;
	for (size_t at = (size_t)(hash ^ hash >> 29);; at++) {
		struct known_entry *entry = &known->entries[at & (known->capacity - 1)];

		if (!entry->tree_plus_one || (entry->inode == wanted->inode &&
					      entry->tree_plus_one == wanted->tree_plus_one &&
					      stamp_equal(entry->ctime, wanted->ctime)))
			return entry;
	}
}

static int grow(struct known *known)
{
	struct known larger = { .capacity = known->capacity ? 2 * known->capacity : CAPACITY_FIRST };

	larger.entries = calloc(larger.capacity, sizeof *larger.entries);
	if (!larger.entries)
		return -ENOMEM;
	larger.count = known->count;
	for (size_t i = 0; i < known->capacity; i++)
		if (known->entries[i].tree_plus_one)
			*find(&larger, &known->entries[i]) = known->entries[i];
	known_done(known);
	*known = larger;
	return 0;
}

int known_put(struct known *known, uint32_t tree, const struct identity *identity)
{
	struct known_entry wanted = { .inode = identity->inode, .ctime = identity->ctime, .tree_plus_one = tree + 1 };
	struct known_entry *entry;
	int r = 2 * (known->count + 1) > known->capacity ? grow(known) : 0;

	if (r < 0 || !identity->mode)
		return r;
	entry = find(known, &wanted);
	known->count += !entry->tree_plus_one;
	*entry = wanted;
	return 0;
}

int known_put_journal(struct known *known, const struct journal *journal)
{
	int r = 0;

	for (size_t i = 0; i < journal->op_count && r == 0; i++)
		/* A decision leaves what the host has made. */
		if (journal->ops[i].outcome == JOURNAL_APPLIED && journal->ops[i].action != JOURNAL_KEEP)
			r = known_put(known, journal->ops[i].tree, &journal->ops[i].left);
	for (size_t i = 0; i < journal->directory_count && r == 0; i++)
		r = known_put(known, journal->directories[i].tree, &journal->directories[i].left);
	for (uint32_t tree = 0; tree < STAGE_TREES_MAX && r == 0; tree++)
		r = known_put(known, tree, &journal->areas[tree].left);
	for (size_t i = 0; i < journal->parted_count && r == 0; i++)
		r = known_put(known, journal->parted[i].tree, &journal->parted[i].left);
	return r;
}

bool known_has(const struct known *known, uint32_t tree, const struct identity *identity)
{
	struct known_entry wanted = { .inode = identity->inode, .ctime = identity->ctime, .tree_plus_one = tree + 1 };

	return known->capacity && find(known, &wanted)->tree_plus_one;
}
