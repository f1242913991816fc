/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/dns/host-names.h"

#include <string.h>

#include "base/str.h"
#include "policy/synthetic.h"

/*
 * A slot is an address: slot n has the n-th address behind the gate's own. Slots are taken in order until all are in
 * use, then the least recently used one is given to the new name, so that an address means another host as late as
 * possible. SLOT_NONE ends every list.
 */

enum { BUCKETS = 4096 };
#define SLOT_NONE UINT32_MAX

struct slot {
	char *host;                    /* owned */
	uint32_t next;                 /* in its bucket */
	uint32_t newer, older;
};

struct host_names {
	size_t max, count, capacity;
	struct slot *slots;
	uint32_t buckets[BUCKETS];
	uint32_t newest, oldest;
	uint64_t reused;
	uint32_t seed;                 /* against names that were chosen to share a bucket */
};

struct host_names *host_names_new(size_t max)
{
	struct host_names *names = calloc(1, sizeof *names);

	if (!names)
		return NULL;
	names->max = max && max < NAMES_MAX ? max : NAMES_MAX;
	names->newest = names->oldest = SLOT_NONE;
	names->seed = (uint32_t)((uintptr_t)names >> 4) * 2654435761u;
	memset(names->buckets, 0xff, sizeof names->buckets);
	return names;
}

void host_names_free(struct host_names *names)
{
	if (!names)
		return;
	for (size_t i = 0; i < names->count; i++)
		free(names->slots[i].host);
	free(names->slots);
	free(names);
}

/* FNV-1a. */
static uint32_t *bucket_of(struct host_names *names, const char *host)
{
	uint32_t hash = 2166136261u ^ names->seed;

	for (; *host; host++)
		hash = (hash ^ (uint8_t)*host) * 16777619u;
	return &names->buckets[hash % BUCKETS];
}

static void unlink_age(struct host_names *names, uint32_t slot)
{
	struct slot *at = &names->slots[slot];

	*(at->newer == SLOT_NONE ? &names->newest : &names->slots[at->newer].older) = at->older;
	*(at->older == SLOT_NONE ? &names->oldest : &names->slots[at->older].newer) = at->newer;
}

static void link_newest(struct host_names *names, uint32_t slot)
{
	struct slot *at = &names->slots[slot];

	at->newer = SLOT_NONE;
	at->older = names->newest;
	*(names->newest == SLOT_NONE ? &names->oldest : &names->slots[names->newest].newer) = slot;
	names->newest = slot;
}

static void touch(struct host_names *names, uint32_t slot)
{
	unlink_age(names, slot);
	link_newest(names, slot);
}

static void forget(struct host_names *names, uint32_t slot)
{
	uint32_t *link = bucket_of(names, names->slots[slot].host);

	while (*link != slot)
		link = &names->slots[*link].next;
	*link = names->slots[slot].next;
	unlink_age(names, slot);
	free(names->slots[slot].host);
	names->slots[slot].host = NULL;
}

static int grow(struct host_names *names)
{
	size_t capacity = names->capacity ? 2 * names->capacity : 64;
	struct slot *slots;

	if (names->count < names->capacity)
		return 0;
	if (capacity > names->max)
		capacity = names->max;
	slots = realloc(names->slots, capacity * sizeof *slots);
	if (!slots)
		return -ENOMEM;
	names->slots = slots;
	names->capacity = capacity;
	return 0;
}

static int new_slot(struct host_names *names, const char *host, uint32_t *ret_slot)
{
	char *copy = str_dup(host);
	uint32_t slot, *bucket;

	if (!copy || (names->count < names->max && grow(names) < 0)) {
		free(copy);
		return -ENOMEM;
	}
	if (names->count < names->max) {
		slot = (uint32_t)names->count++;
	} else {
		slot = names->oldest;
		forget(names, slot);
		names->reused++;
	}
	bucket = bucket_of(names, host);
	names->slots[slot] = (struct slot){ .host = copy, .next = *bucket };
	*bucket = slot;
	link_newest(names, slot);
	*ret_slot = slot;
	return 0;
}

int host_names_assign(struct host_names *names, const char *host, uint32_t *ret_number)
{
	uint32_t slot = *bucket_of(names, host);
	int r = 0;

	while (slot != SLOT_NONE && !str_equal(names->slots[slot].host, host))
		slot = names->slots[slot].next;
	if (slot == SLOT_NONE)
		r = new_slot(names, host, &slot);
	else
		touch(names, slot);
	if (r == 0)
		*ret_number = slot + SYNTHETIC_FIRST;
	return r;
}

uint64_t host_names_count_reused(const struct host_names *names)
{
	return names->reused;
}

const char *host_names_find(struct host_names *names, const uint8_t address[16])
{
	uint32_t number;

	if (!synthetic_find(address, &number) || number < SYNTHETIC_FIRST ||
	    number - SYNTHETIC_FIRST >= names->count)
		return NULL;
	touch(names, number - SYNTHETIC_FIRST);
	return names->slots[number - SYNTHETIC_FIRST].host;
}
