/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "egress/http/pace.h"

enum { MOMENT_NS = PACE_MOMENT_US * 1000 };
static const uint64_t long_ns = PACE_LONG_MOMENT_MS * UINT64_C(1000000), start_ns = UINT64_C(1) << 40;

static void test_a_moment_after_the_last_bytes(void **state)
{
	struct pace pace = { 0 };

	pace_add(&pace, 1);
	assert_int_equal(pace_look(&pace, false, false, start_ns), MOMENT_NS);
	assert_int_equal(pace_look(&pace, false, false, start_ns + 100), MOMENT_NS - 100);
	pace_add(&pace, 100000);
	assert_int_equal(pace_look(&pace, false, false, start_ns + 200), MOMENT_NS);
	assert_int_equal(pace_look(&pace, false, false, start_ns + 200 + MOMENT_NS), 0);
}

static void test_a_long_moment_after_many(void **state)
{
	struct pace pace = { 0 };
	uint64_t now_ns = start_ns;

	pace_add(&pace, PACE_BURST_MAX);
	assert_int_equal(pace_look(&pace, true, false, now_ns), MOMENT_NS);
	pace_add(&pace, 1);
	assert_int_equal(pace_look(&pace, true, false, now_ns + 1), long_ns);
	assert_int_equal(pace_look(&pace, true, false, now_ns + long_ns), 1);
	assert_int_equal(pace_look(&pace, true, false, now_ns + long_ns + 1), 0);
	/* Few after a moment are few again. */
	now_ns += 2 * long_ns;
	pace_add(&pace, 10);
	assert_int_equal(pace_look(&pace, true, false, now_ns), MOMENT_NS);
	assert_int_equal(pace_look(&pace, true, false, now_ns + MOMENT_NS), 0);
}

/* While we do not take what there is, nobody knows whether more would come: neither a moment nor a burst ends. */
static void test_held_up(void **state)
{
	struct pace pace = { 0 };
	uint64_t now_ns = start_ns;

	pace_add(&pace, 100000);
	assert_int_equal(pace_look(&pace, true, true, now_ns), long_ns);
	now_ns += 10 * long_ns;
	assert_int_equal(pace_look(&pace, true, true, now_ns), long_ns);
	now_ns += 10 * long_ns;
	assert_int_equal(pace_look(&pace, true, false, now_ns), long_ns);
	pace_add(&pace, 10);
	assert_int_equal(pace_look(&pace, true, true, now_ns + 1), long_ns);
	now_ns += 10 * long_ns;
	pace_add(&pace, 10);
	assert_int_equal(pace_look(&pace, true, false, now_ns), long_ns);
	assert_int_equal(pace.burst, 100020);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_moment_after_the_last_bytes),
		cmocka_unit_test(test_a_long_moment_after_many),
		cmocka_unit_test(test_held_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
