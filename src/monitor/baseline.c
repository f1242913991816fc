/* SPDX-License-Identifier: Apache-2.0 */
#include "monitor/baseline.h"

#include <string.h>

#include "base/hash.h"
#include "base/str.h"
#include "os/clock.h"

enum { CAPACITY_FIRST = 64 };

/* ---- sets ---- */

static struct baseline_item *find(const struct baseline_set *set, uint64_t hash)
{
	size_t at = hash & (set->capacity - 1);

	while (set->items[at].hash && set->items[at].hash != hash)
		at = (at + 1) & (set->capacity - 1);
	return &set->items[at];
}

bool baseline_set_has(const struct baseline_set *set, uint64_t hash)
{
	return set->capacity && find(set, hash)->hash;
}

void baseline_set_done(struct baseline_set *set)
{
	free(set->items);
	*set = (struct baseline_set){ 0 };
}

/* At most half of the places are taken, so that every search ends soon. */
static int grow(struct baseline_set *set)
{
	struct baseline_set grown = { .capacity = set->capacity ? set->capacity * 2 : CAPACITY_FIRST };

	if ((set->count + 1) * 2 <= set->capacity)
		return 0;
	grown.items = calloc(grown.capacity, sizeof *grown.items);
	if (!grown.items)
		return -ENOMEM;
	for (size_t i = 0; i < set->capacity; i++)
		if (set->items[i].hash)
			*find(&grown, set->items[i].hash) = set->items[i];
	grown.count = set->count;
	free(set->items);
	*set = grown;
	return 0;
}

int baseline_set_add(struct baseline_set *set, uint64_t hash, uint32_t seen, size_t max)
{
	struct baseline_item *item;
	int r = grow(set);

	if (r < 0)
		return r;
	item = find(set, hash);
	if (item->hash) {
		item->seen = seen;
		return 0;
	}
	if (set->count >= max)
		return -ENOSPC;
	*item = (struct baseline_item){ hash, seen };
	set->count++;
	return 1;
}

static int compare_seen(const void *a, const void *b)
{
	const struct baseline_item *x = a, *y = b;

	if (x->seen != y->seen)
		return x->seen < y->seen ? 1 : -1;
	return x->hash < y->hash ? -1 : x->hash > y->hash;
}

/* Keeps the most recently seen. */
static int trim(struct baseline_set *set, size_t max)
{
	struct baseline_set kept = { 0 };
	int r = 0;

	if (set->count <= max)
		return 0;
	qsort(set->items, set->capacity, sizeof *set->items, compare_seen);
	for (size_t i = 0; r >= 0 && i < set->capacity && kept.count < max; i++)
		if (set->items[i].hash)
			r = baseline_set_add(&kept, set->items[i].hash, set->items[i].seen, max);
	baseline_set_done(set);
	*set = kept;
	return r < 0 ? r : 0;
}

/* ---- the whole ---- */

static int set_labels(struct baseline *baseline, const char *agent, size_t agent_size, const char *project,
		      size_t project_size)
{
	baseline->agent = strndup(agent, agent_size);
	baseline->project = strndup(project, project_size);
	return baseline->agent && baseline->project ? 0 : -ENOMEM;
}

void baseline_done(struct baseline *baseline)
{
	for (size_t i = 0; i < MONITOR_SET_COUNT; i++)
		baseline_set_done(&baseline->sets[i]);
	free(baseline->agent);
	free(baseline->project);
	baseline->agent = baseline->project = NULL;
}

int baseline_init(struct baseline *baseline, const char *agent, const char *project)
{
	int r;

	memset(baseline, 0, sizeof *baseline);
	r = random_bytes(baseline->key, sizeof baseline->key);
	if (r == 0)
		r = set_labels(baseline, agent, strnlen(agent, BASELINE_LABEL_MAX), project,
			       strnlen(project, BASELINE_LABEL_MAX));
	if (r < 0)
		baseline_done(baseline);
	return r;
}

uint64_t baseline_hash(const struct baseline *baseline, enum monitor_feature kind, const void *bytes, size_t size)
{
	uint8_t tag = (uint8_t)kind;
	const struct hash_piece pieces[] = {
		{ baseline->key, sizeof baseline->key }, { &tag, sizeof tag }, { bytes, size },
	};
	struct hash hash;
	uint64_t result;

	hash_pieces(&hash, pieces, ARRAY_SIZE(pieces));
	memcpy(&result, hash.bytes, sizeof result);
	return result ? result : 1;
}

int baseline_learn(struct baseline *baseline, const uint64_t values[MONITOR_FEATURE_COUNT],
		   const struct baseline_set met[MONITOR_SET_COUNT])
{
	uint32_t kept = baseline->count < BASELINE_SESSIONS ? baseline->count : BASELINE_SESSIONS - 1;

	if (baseline->sessions < UINT32_MAX)
		baseline->sessions++;
	memmove(baseline->values[1], baseline->values[0], kept * sizeof *baseline->values);
	memcpy(baseline->values[0], values, sizeof *baseline->values);
	baseline->count = kept + 1;
	for (size_t kind = 0; kind < MONITOR_SET_COUNT; kind++) {
		struct baseline_set *set = &baseline->sets[kind];
		int r = 0;

		for (size_t i = 0; r >= 0 && i < met[kind].capacity; i++)
			if (met[kind].items[i].hash)
				r = baseline_set_add(set, met[kind].items[i].hash, baseline->sessions, SIZE_MAX);
		if (r >= 0)
			r = trim(set, monitor_features[kind].set_max);
		if (r < 0)
			return r;
	}
	return 0;
}
