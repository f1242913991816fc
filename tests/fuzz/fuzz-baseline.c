/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A baseline from arbitrary bytes: as they are, and, because the hash at the end would keep a fuzzer out, with the
 * right one. What is accepted is the same when it is read again, has a limit for everything that is no lower than what
 * was seen, and learns.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "monitor/baseline.h"
#include "monitor/score.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check_same_set(const struct baseline_set *set, const struct baseline_set *again)
{
	require(set->count == again->count);
	for (size_t i = 0; i < set->capacity; i++)
		require(!set->items[i].hash || baseline_set_has(again, set->items[i].hash));
}

static void check_again(const struct baseline *baseline)
{
	struct baseline again;
	cleanup_buf struct buf out;

	buf_init(&out, BASELINE_SIZE_MAX);
	require(baseline_format(baseline, &out) == 0);
	require(baseline_parse(&again, out.bytes, out.size) == 0);
	require(again.sessions == baseline->sessions && again.count == baseline->count);
	require(strcmp(again.agent, baseline->agent) == 0 && strcmp(again.project, baseline->project) == 0);
	require(memcmp(again.values, baseline->values, sizeof again.values) == 0);
	for (size_t i = 0; i < MONITOR_SET_COUNT; i++)
		check_same_set(&baseline->sets[i], &again.sets[i]);
	baseline_done(&again);
}

static void check_scores(const struct baseline *baseline)
{
	static const struct score_budget budget = { .sessions = 100, .learn = 2 };

	for (unsigned feature = 0; feature < MONITOR_FEATURE_COUNT; feature++) {
		struct score_row row;
		uint64_t limit;
		double chance, before = 1;

		score_row_init(&row, baseline, feature);
		for (uint64_t number = 0; number < UINT64_MAX / 8; number = number * 8 + 1) {
			chance = score_chance(&row, feature, number);
			/* To the last digit of a double. */
			require(chance >= 0 && chance <= before * (1 + 1e-9));
			before = chance;
		}
		limit = score_limit(&row, feature, &budget);
		require(limit > score_median(&row) || limit == UINT64_MAX || score_max(&row) > UINT64_MAX / 4);
		(void)score_learnt(UINT64_MAX, limit);
	}
}

static void check_file(const uint8_t *bytes, size_t size)
{
	struct baseline_set met[MONITOR_SET_COUNT] = { { 0 } };
	uint64_t values[MONITOR_FEATURE_COUNT] = { 1, UINT64_MAX };
	struct baseline baseline;

	if (baseline_parse(&baseline, bytes, size) < 0)
		return;
	check_again(&baseline);
	check_scores(&baseline);
	require(baseline_set_add(&met[0], 7, baseline.sessions, 1) == 1);
	require(baseline_learn(&baseline, values, met) == 0);
	require(baseline_set_has(&baseline.sets[0], 7) && baseline.count <= BASELINE_SESSIONS);
	check_again(&baseline);
	baseline_set_done(&met[0]);
	baseline_done(&baseline);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	uint8_t *mended;
	struct hash hash;

	check_file(bytes, size);
	if (size < sizeof hash || size > BASELINE_SIZE_MAX)
		return 0;
	mended = malloc(size);
	require(mended);
	memcpy(mended, bytes, size);
	hash_bytes(&hash, bytes, size - sizeof hash);
	memcpy(mended + size - sizeof hash, &hash, sizeof hash);
	check_file(mended, size);
	free(mended);
	return 0;
}
