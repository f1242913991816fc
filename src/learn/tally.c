/* SPDX-License-Identifier: Apache-2.0 */
#include "learn/tally.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS_PER_ITEM = 4 };

int tally_init(struct tally *tally, size_t max)
{
	*tally = (struct tally){
		.items = calloc(max, sizeof *tally->items),
		.slots = calloc(max * SLOTS_PER_ITEM, sizeof *tally->slots),
		.max = max,
	};
	if (tally->items && tally->slots)
		return 0;
	tally_done(tally);
	return -ENOMEM;
}

void tally_done(struct tally *tally)
{
	for (size_t i = 0; i < tally->count; i++) {
		free(tally->items[i].key);
		free(tally->items[i].by);
	}
	free(tally->items);
	free(tally->slots);
	*tally = (struct tally){ 0 };
}

/* FNV-1a: who crowds a slot makes only this report slow. */
static uint64_t hash_of(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * 0x100000001b3;
	return hash;
}

static uint32_t *slot_of(const struct tally *tally, const char *key)
{
	size_t slots = tally->max * SLOTS_PER_ITEM, at = hash_of(key) % slots;

	while (tally->slots[at] && strcmp(tally->items[tally->slots[at] - 1].key, key) != 0)
		at = (at + 1) % slots;
	return &tally->slots[at];
}

int tally_add(struct tally *tally, const char *key, uint64_t count, struct tally_item **ret_item)
{
	uint32_t *slot = slot_of(tally, key);
	struct tally_item *item = NULL;

	if (!*slot && tally->count == tally->max) {
		tally->left_out += count;
		*ret_item = NULL;
		return 0;
	}
	if (*slot) {
		item = &tally->items[*slot - 1];
		item->count += count;
		*ret_item = item;
		return 0;
	}
	item = &tally->items[tally->count];
	item->key = strdup(key);
	if (!item->key)
		return -ENOMEM;
	item->count = count;
	*slot = (uint32_t)++tally->count;
	*ret_item = item;
	return 1;
}

int tally_tell(struct tally_item *item, uint64_t record, const char *by)
{
	char *copy = strdup(by);

	if (!copy)
		return -ENOMEM;
	free(item->by);
	item->by = copy;
	item->record = record;
	return 0;
}
