/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/num.h"
#include "supervise/clocks.h"

#define S_NS 1000000000ULL

static struct policy policy_with(uint64_t wall_ms, uint64_t cpu_ms, uint64_t idle_ms)
{
	struct policy policy = { 0 };

	policy.limits[RESOURCE_WALL_MS].value = wall_ms;
	policy.limits[RESOURCE_CPU_MS].value = cpu_ms;
	policy.limits[RESOURCE_IDLE_MS].value = idle_ms;
	return policy;
}

static void no_limit_never_hits_and_never_wakes(void **state)
{
	struct policy policy = policy_with(NUM_UNLIMITED, NUM_UNLIMITED, NUM_UNLIMITED);
	struct clocks clocks;

	clocks_init(&clocks, &policy, 2, 5 * S_NS);
	assert_int_equal(clocks_timeout_ms(&clocks, 5 * S_NS), -1);
	assert_int_equal(clocks_check(&clocks, UINT64_MAX - 1), CLOCK_NONE);
	assert_false(clocks_must_look(&clocks, UINT64_MAX - 1));
}

static void wall_hits_at_its_moment_and_not_before(void **state)
{
	struct policy policy = policy_with(2000, NUM_UNLIMITED, NUM_UNLIMITED);
	struct clocks clocks;

	clocks_init(&clocks, &policy, 2, 5 * S_NS);
	assert_int_equal(clocks_timeout_ms(&clocks, 5 * S_NS), 2000);
	assert_int_equal(clocks_check(&clocks, 7 * S_NS - 1), CLOCK_NONE);
	assert_int_equal(clocks_timeout_ms(&clocks, 7 * S_NS - 1), 1);
	assert_int_equal(clocks_check(&clocks, 7 * S_NS), CLOCK_WALL);
	assert_int_equal(clocks_timeout_ms(&clocks, 7 * S_NS), 0);
}

static void cpu_is_looked_at_no_later_than_all_cpus_could_use_it_up(void **state)
{
	struct policy policy = policy_with(NUM_UNLIMITED, 4000, NUM_UNLIMITED);
	struct clocks clocks;

	clocks_init(&clocks, &policy, 2, 0);
	assert_int_equal(clocks_timeout_ms(&clocks, 0), 2000);
	assert_false(clocks_must_look(&clocks, 2 * S_NS - 1));
	assert_true(clocks_must_look(&clocks, 2 * S_NS));
	clocks_saw(&clocks, 2 * S_NS, 3 * S_NS, 0);
	assert_int_equal(clocks_check(&clocks, 2 * S_NS), CLOCK_NONE);
	assert_int_equal(clocks_timeout_ms(&clocks, 2 * S_NS), 500);
	clocks_saw(&clocks, 3 * S_NS, 4 * S_NS, 0);
	assert_int_equal(clocks_check(&clocks, 3 * S_NS), CLOCK_CPU);
}

static void close_to_the_limit_looks_do_not_become_a_busy_loop(void **state)
{
	struct policy policy = policy_with(NUM_UNLIMITED, 4000, NUM_UNLIMITED);
	struct clocks clocks;

	clocks_init(&clocks, &policy, 2, 0);
	clocks_saw(&clocks, S_NS, 4 * S_NS - 1, 0);
	assert_true(clocks_timeout_ms(&clocks, S_NS) >= 20);
}

static void idle_starts_anew_with_every_sign_of_life(void **state)
{
	struct policy policy = policy_with(NUM_UNLIMITED, NUM_UNLIMITED, 1000);
	struct clocks clocks;

	clocks_init(&clocks, &policy, 1, 0);
	clocks_saw(&clocks, S_NS - 1, 0, 17); /* output moved */
	assert_int_equal(clocks_check(&clocks, S_NS), CLOCK_NONE);
	clocks_saw(&clocks, 2 * S_NS - 2, S_NS / 2, 17); /* CPU was used */
	assert_int_equal(clocks_check(&clocks, 2 * S_NS), CLOCK_NONE);
	clocks_saw(&clocks, 3 * S_NS, S_NS / 2, 17); /* nothing happened */
	assert_int_equal(clocks_check(&clocks, 3 * S_NS), CLOCK_IDLE);
}

/* A start uses some milliseconds: dated to a look at the end of the limit, it would double the limit. */
static void what_happened_at_the_start_makes_idleness_a_quarter_longer_at_most(void **state)
{
	struct policy policy = policy_with(NUM_UNLIMITED, NUM_UNLIMITED, 4000);
	struct clocks clocks;
	uint64_t now_ns = 0;
	unsigned looks = 0;

	clocks_init(&clocks, &policy, 1, 0);
	while (clocks_check(&clocks, now_ns) == CLOCK_NONE && looks++ < 100) {
		now_ns += (uint64_t)clocks_timeout_ms(&clocks, now_ns) * 1000000;
		assert_true(clocks_must_look(&clocks, now_ns));
		clocks_saw(&clocks, now_ns, S_NS / 100, 0);
	}
	assert_int_equal(now_ns, 5 * S_NS);
	assert_int_equal(looks, 5);
}

/* As much as counts within the limit counts however often one looks. */
static void little_by_little_is_no_idleness(void **state)
{
	struct policy policy = policy_with(NUM_UNLIMITED, NUM_UNLIMITED, 4000);
	struct clocks clocks;

	clocks_init(&clocks, &policy, 1, 0);
	for (uint64_t second = 1; second < 100; second++) {
		clocks_saw(&clocks, second * S_NS, second * 600000, 0);
		assert_int_equal(clocks_check(&clocks, second * S_NS), CLOCK_NONE);
	}
}

static void a_pause_counts_as_nothing(void **state)
{
	struct policy policy = policy_with(2000, NUM_UNLIMITED, 1000);
	struct clocks clocks;

	clocks_init(&clocks, &policy, 2, 5 * S_NS);
	clocks_pause(&clocks, 10 * S_NS);
	assert_int_equal(clocks_check(&clocks, 16 * S_NS - 1), CLOCK_NONE);
	assert_false(clocks_must_look(&clocks, 15 * S_NS));
	assert_int_equal(clocks_check(&clocks, 16 * S_NS), CLOCK_IDLE);
	clocks_saw(&clocks, 16 * S_NS, 0, 1);
	assert_int_equal(clocks_check(&clocks, 17 * S_NS - 1), CLOCK_NONE);
	assert_int_equal(clocks_check(&clocks, 17 * S_NS), CLOCK_WALL);
}

static void absurd_limits_do_not_overflow_into_the_past(void **state)
{
	struct policy policy = policy_with(UINT64_MAX - 1, UINT64_MAX / 1000, UINT64_MAX / 2);
	struct clocks clocks;

	clocks_init(&clocks, &policy, 64, 9 * S_NS);
	assert_int_equal(clocks_check(&clocks, 1000000 * S_NS), CLOCK_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_limit_never_hits_and_never_wakes),
		cmocka_unit_test(wall_hits_at_its_moment_and_not_before),
		cmocka_unit_test(cpu_is_looked_at_no_later_than_all_cpus_could_use_it_up),
		cmocka_unit_test(close_to_the_limit_looks_do_not_become_a_busy_loop),
		cmocka_unit_test(idle_starts_anew_with_every_sign_of_life),
		cmocka_unit_test(what_happened_at_the_start_makes_idleness_a_quarter_longer_at_most),
		cmocka_unit_test(little_by_little_is_no_idleness),
		cmocka_unit_test(a_pause_counts_as_nothing),
		cmocka_unit_test(absurd_limits_do_not_overflow_into_the_past),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
