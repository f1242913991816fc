/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/num.h"
#include "policy/describe/describe.h"
#include "policy/scalars.h"

static void says_what_may_be_done(void **state)
{
	static const struct file_plan_entry plan[] = {
		{ "/home/u/\033[31mp", FILE_WRITE, 0, 0 },
		{ "/usr", FILE_READ, 0, 0 },
	};
	struct policy policy = {
		.name = "medium", .level = TRUST_MEDIUM, .files.plan = plan, .files.plan_count = 2
	};
	cleanup_buf struct buf out;
	const char *text;

	for (size_t i = 0; i < RESOURCE_COUNT; i++)
		policy.limits[i].value = NUM_UNLIMITED;
	policy.limits[RESOURCE_MEMORY].value = 1 << 30;
	buf_init(&out, 1 << 16);
	assert_int_equal(policy_describe(&policy, &(struct policy_place){ 0 }, &out), 0);
	text = buf_text(&out);
	assert_non_null(strstr(text, "`/usr`"));
	assert_non_null(strstr(text, "no other network"));
	assert_non_null(strstr(text, "1GiB"));
	assert_non_null(strstr(text, "cannot be executed"));
	assert_non_null(strstr(text, "denials.jsonl"));
	assert_null(strstr(text, "CPU time"));
	assert_null(strchr(text, '\033'));
}

static void says_what_happens_with_hosts_that_no_rule_lists(void **state)
{
	static const struct {
		enum verdict verdict;
		const char *said;
	} cases[] = {
		{ VERDICT_DENY, "only these; other names do not exist here" },
		{ VERDICT_ASK, "For any other, a person is asked" },
		{ VERDICT_ALLOW, "public internet can be reached" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct policy policy = { .name = "x", .network.mode = NETWORK_GATE,
					 .network.default_verdict = cases[i].verdict };
		cleanup_buf struct buf out;

		buf_init(&out, 1 << 16);
		assert_int_equal(policy_describe(&policy, &(struct policy_place){ 0 }, &out), 0);
		for (size_t j = 0; j < sizeof cases / sizeof *cases; j++)
			assert_int_equal(!!strstr(buf_text(&out), cases[j].said), i == j);
	}
}

static bool is_not_codex(const char *path)
{
	return !strstr(path, ".codex");
}

/* It would be thrown away at the end, and not be written to the real files. */
static void what_the_host_does_not_have_is_no_real_file(void **state)
{
	static const struct file_plan_entry plan[] = {
		{ "/home/u", FILE_SCRATCH, 0, 0 },
		{ "/home/u/.claude", FILE_WRITE, FILE_OPTIONAL, 0 },
		{ "/home/u/.codex", FILE_WRITE, FILE_OPTIONAL, 0 },
		{ "/home/u/.codex/deep", FILE_WRITE, FILE_OPTIONAL, 0 },
	};
	struct policy policy = { .name = "x", .files = { .plan = plan, .plan_count = 4 } };
	cleanup_buf struct buf out;
	const char *real, *private, *text;

	buf_init(&out, 1 << 16);
	assert_int_equal(policy_describe(&policy, &(struct policy_place){ .is_there = is_not_codex }, &out), 0);
	text = buf_text(&out);
	real = strstr(text, "straight to the real files");
	private = strstr(text, "thrown away at the end");
	assert_true(real && private && real < private);
	assert_true(strstr(text, "`/home/u/.claude`") < private);
	assert_true(strstr(text, "`/home/u/.codex`") > private);
	assert_true(strstr(text, "`/home/u/.codex/deep`") > private);
}

static void a_limit_that_nothing_holds_is_not_said(void **state)
{
	struct policy policy = { .name = "x" };
	struct policy_place place = { .holds = { [RESOURCE_MEMORY] = LIMIT_LOOKED_AT,
						 [RESOURCE_PROCESSES] = LIMIT_HOLDS_NOT } };
	cleanup_buf struct buf out;

	for (size_t i = 0; i < RESOURCE_COUNT; i++)
		policy.limits[i].value = NUM_UNLIMITED;
	policy.limits[RESOURCE_MEMORY].value = 1 << 30;
	policy.limits[RESOURCE_PROCESSES].value = 77;
	policy.limits[RESOURCE_OPEN_FILES].value = 99;
	buf_init(&out, 1 << 16);
	assert_int_equal(policy_describe(&policy, &place, &out), 0);
	assert_non_null(strstr(buf_text(&out), "1GiB; checked from time to time"));
	assert_null(strstr(buf_text(&out), "processes and threads"));
	assert_non_null(strstr(buf_text(&out), "open files of one process: 99\n"));
}

static void a_full_buffer_is_an_error(void **state)
{
	struct policy policy = { .name = "medium" };
	cleanup_buf struct buf out;

	buf_init(&out, 100);
	assert_int_equal(policy_describe(&policy, &(struct policy_place){ 0 }, &out), -ENOBUFS);
}

static void limits_as_text(void **state)
{
	char text[32];

	scalar_value_to_text(SCALAR_RESOURCES + RESOURCE_CPUS, 1500, text);
	assert_string_equal(text, "1.5");
	scalar_value_to_text(SCALAR_RESOURCES + RESOURCE_CPUS, 250, text);
	assert_string_equal(text, "0.25");
	scalar_value_to_text(SCALAR_RESOURCES + RESOURCE_CPUS, 2000, text);
	assert_string_equal(text, "2");
	scalar_value_to_text(SCALAR_RESOURCES + RESOURCE_CPUS, 1005, text);
	assert_string_equal(text, "1.005");
	scalar_value_to_text(SCALAR_RESOURCES + RESOURCE_CPUS, NUM_UNLIMITED, text);
	assert_string_equal(text, "unlimited");
	scalar_value_to_text(SCALAR_RESOURCES + RESOURCE_WALL_MS, 5400000, text);
	assert_string_equal(text, "1h30m");
	scalar_value_to_text(SCALAR_RESOURCES + RESOURCE_MEMORY, 4ULL << 30, text);
	assert_string_equal(text, "4GiB");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(says_what_may_be_done),
		cmocka_unit_test(says_what_happens_with_hosts_that_no_rule_lists),
		cmocka_unit_test(what_the_host_does_not_have_is_no_real_file),
		cmocka_unit_test(a_limit_that_nothing_holds_is_not_said),
		cmocka_unit_test(a_full_buffer_is_an_error),
		cmocka_unit_test(limits_as_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
