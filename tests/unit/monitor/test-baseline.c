/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "monitor/baseline.h"

static void learn(struct baseline *baseline, uint64_t number, const char *const *hosts)
{
	struct baseline_set met[MONITOR_SET_COUNT] = { 0 };
	uint64_t values[MONITOR_FEATURE_COUNT];

	for (size_t i = 0; i < MONITOR_FEATURE_COUNT; i++)
		values[i] = number + i;
	for (; hosts && *hosts; hosts++) {
		uint64_t hash = baseline_hash(baseline, MONITOR_HOSTS, *hosts, strlen(*hosts));

		assert_int_equal(baseline_set_add(&met[MONITOR_HOSTS], hash, 0, 1024), 1);
	}
	assert_int_equal(baseline_learn(baseline, values, met), 0);
	baseline_set_done(&met[MONITOR_HOSTS]);
}

static void it_comes_back_as_it_was(void **state)
{
	static const char *const hosts[] = { "a.org", "b.org", NULL };
	struct baseline baseline, again;
	struct buf out;

	buf_init(&out, BASELINE_SIZE_MAX);
	assert_int_equal(baseline_init(&baseline, "claude", "/home/u/p"), 0);
	for (uint64_t i = 0; i < 100; i++)
		learn(&baseline, i, i % 2 ? hosts : NULL);
	assert_int_equal(baseline_format(&baseline, &out), 0);
	assert_int_equal(baseline_parse(&again, out.bytes, out.size), 0);
	assert_string_equal(again.agent, "claude");
	assert_string_equal(again.project, "/home/u/p");
	assert_int_equal(again.sessions, 100);
	assert_int_equal(again.count, BASELINE_SESSIONS);
	assert_int_equal(again.values[0][0], 99);
	assert_int_equal(again.values[BASELINE_SESSIONS - 1][1], 99 - BASELINE_SESSIONS + 2);
	assert_int_equal(again.sets[MONITOR_HOSTS].count, 2);
	assert_true(baseline_set_has(&again.sets[MONITOR_HOSTS], baseline_hash(&again, MONITOR_HOSTS, "a.org", 5)));
	assert_false(baseline_set_has(&again.sets[MONITOR_HOSTS], baseline_hash(&again, MONITOR_HOSTS, "c.org", 5)));
	/* Another kind, or another key, is another thing. */
	assert_false(baseline_set_has(&again.sets[MONITOR_PROGRAMS], baseline_hash(&again, MONITOR_HOSTS, "a.org", 5)));
	again.key[0] ^= 1;
	assert_false(baseline_set_has(&again.sets[MONITOR_HOSTS], baseline_hash(&again, MONITOR_HOSTS, "a.org", 5)));
	baseline_done(&again);
	baseline_done(&baseline);
	buf_done(&out);
}

static void a_damaged_byte_anywhere_is_noticed(void **state)
{
	static const char *const hosts[] = { "a.org", NULL };
	struct baseline baseline, again;
	struct buf out;

	buf_init(&out, BASELINE_SIZE_MAX);
	assert_int_equal(baseline_init(&baseline, "a", "/p"), 0);
	learn(&baseline, 1, hosts);
	learn(&baseline, 2, NULL);
	assert_int_equal(baseline_format(&baseline, &out), 0);
	for (size_t i = 0; i < out.size; i++)
		for (unsigned bit = 0; bit < 8; bit++) {
			out.bytes[i] ^= (uint8_t)(1u << bit);
			assert_int_equal(baseline_parse(&again, out.bytes, out.size), -EBADMSG);
			out.bytes[i] ^= (uint8_t)(1u << bit);
		}
	for (size_t size = 0; size < out.size; size++)
		assert_int_equal(baseline_parse(&again, out.bytes, size), -EBADMSG);
	assert_int_equal(baseline_parse(&again, out.bytes, out.size), 0);
	baseline_done(&again);
	baseline_done(&baseline);
	buf_done(&out);
}

static void what_is_unseen_longest_is_forgotten(void **state)
{
	struct baseline_set met[MONITOR_SET_COUNT] = { 0 };
	uint64_t values[MONITOR_FEATURE_COUNT] = { 0 };
	unsigned most = monitor_features[MONITOR_SYSCALLS].set_max;
	struct baseline baseline;

	assert_int_equal(baseline_init(&baseline, "a", "/p"), 0);
	for (uint64_t round = 1; round <= 3; round++) {
		for (uint64_t i = 0; i < most; i++)
			assert_int_equal(baseline_set_add(&met[MONITOR_SYSCALLS], round << 32 | i, 0, most), 1);
		assert_int_equal(baseline_set_add(&met[MONITOR_SYSCALLS], 1, 0, most), -ENOSPC);
		assert_int_equal(baseline_learn(&baseline, values, met), 0);
		baseline_set_done(&met[MONITOR_SYSCALLS]);
		assert_int_equal(baseline.sets[MONITOR_SYSCALLS].count, most);
		for (uint64_t i = 0; i < most; i++)
			assert_true(baseline_set_has(&baseline.sets[MONITOR_SYSCALLS], round << 32 | i));
	}
	assert_false(baseline_set_has(&baseline.sets[MONITOR_SYSCALLS], (uint64_t)1 << 32 | 1));
	baseline_done(&baseline);
}

static void it_is_kept_in_a_file(void **state)
{
	char directory[] = "/tmp/atolltest-baseline-XXXXXX", path[PATH_MAX], other[PATH_MAX];
	struct baseline baseline, again;

	assert_non_null(mkdtemp(directory));
	assert_int_equal(baseline_path(path, sizeof path, directory, "a", "/p"), 0);
	assert_int_equal(baseline_path(other, sizeof other, directory, "a/", "p"), 0);
	assert_string_not_equal(path, other);
	assert_int_equal(baseline_load(&again, path), -ENOENT);
	assert_int_equal(baseline_init(&baseline, "a", "/p"), 0);
	learn(&baseline, 7, NULL);
	assert_int_equal(baseline_store(&baseline, path), 0);
	assert_int_equal(baseline_load(&again, path), 0);
	assert_int_equal(again.values[0][0], 7);
	baseline_done(&again);
	baseline_done(&baseline);
	assert_int_equal(unlink(path), 0);
	snprintf(path, sizeof path, "%s/baselines", directory);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(directory), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_comes_back_as_it_was),
		cmocka_unit_test(a_damaged_byte_anywhere_is_noticed),
		cmocka_unit_test(what_is_unseen_longest_is_forgotten),
		cmocka_unit_test(it_is_kept_in_a_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
