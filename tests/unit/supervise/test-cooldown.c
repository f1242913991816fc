/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "supervise/cooldown.h"

#define SECOND_NS 1000000000ULL

static const struct cooldown_rule rule = { .denials = 3, .within_ms = 10000, .pause_ms = 60000 };

static void a_burst_begins_a_pause(void **state)
{
	struct cooldown cooldown = { 0 };
	uint64_t now = 5 * SECOND_NS;

	assert_false(cooldown_count(&cooldown, &rule, now));
	assert_false(cooldown_count(&cooldown, &rule, now + SECOND_NS));
	assert_int_equal(cooldown_left_ms(&cooldown, now + SECOND_NS), 0);
	assert_true(cooldown_count(&cooldown, &rule, now + 10 * SECOND_NS));
	assert_int_equal(cooldown_left_ms(&cooldown, now + 10 * SECOND_NS), 60000);
	/* What is refused during a pause makes it no longer. */
	for (int i = 0; i < 100; i++)
		assert_false(cooldown_count(&cooldown, &rule, now + 20 * SECOND_NS));
	assert_int_equal(cooldown_left_ms(&cooldown, now + 69 * SECOND_NS), 1000);
	assert_int_equal(cooldown_left_ms(&cooldown, now + 70 * SECOND_NS), 0);
	assert_false(cooldown_count(&cooldown, &rule, now + 70 * SECOND_NS));
	assert_false(cooldown_count(&cooldown, &rule, now + 71 * SECOND_NS));
	assert_true(cooldown_count(&cooldown, &rule, now + 72 * SECOND_NS));
	assert_int_equal(cooldown.episodes, 2);
}

static void slow_refusals_are_none(void **state)
{
	struct cooldown cooldown = { 0 };

	for (uint64_t i = 1; i < 2000; i++)
		assert_false(cooldown_count(&cooldown, &rule, i * 6 * SECOND_NS));
}

static void without_a_rule_nothing_is_counted(void **state)
{
	static const struct cooldown_rule none;
	struct cooldown cooldown = { 0 };

	for (int i = 0; i < 1000; i++)
		assert_false(cooldown_count(&cooldown, &none, SECOND_NS));
	assert_int_equal(cooldown_left_ms(&cooldown, SECOND_NS), 0);
}

static void the_largest_number_is_reached(void **state)
{
	static const struct cooldown_rule large = { COOLDOWN_DENIALS_MAX, 1000, 1000 };
	struct cooldown cooldown = { 0 };
	int begun = 0;

	for (int i = 0; i < COOLDOWN_DENIALS_MAX; i++)
		begun += cooldown_count(&cooldown, &large, SECOND_NS + (uint64_t)i);
	assert_int_equal(begun, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_burst_begins_a_pause),
		cmocka_unit_test(slow_refusals_are_none),
		cmocka_unit_test(without_a_rule_nothing_is_counted),
		cmocka_unit_test(the_largest_number_is_reached),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
