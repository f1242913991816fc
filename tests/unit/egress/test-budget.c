/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "egress/budget.h"

#define SECOND_NS 1000000000ULL

static void without_limits_all_of_it(void **state)
{
	struct budget budget;

	budget_init(&budget, 0, 0, 0, 0);
	assert_int_equal(budget_ask(&budget, 1 << 20, 5), 1 << 20);
	budget_use(&budget, 1 << 20);
	assert_false(budget_is_used_up(&budget));
}

/* Asked at odd moments, it gives the rate and one burst more at the most. */
static void the_rate_holds_however_it_is_asked(void **state)
{
	struct budget budget;
	uint64_t moved = 0;

	budget_init(&budget, 1000000, 1000, 0, 0);
	for (uint64_t now = 0; now < 10 * SECOND_NS; now += SECOND_NS / 777) {
		size_t part = budget_ask(&budget, 100000, now);

		budget_use(&budget, part);
		moved += part;
	}
	assert_in_range(moved, 9900000, 10200000);
	/* What was not used for an hour is not saved up. */
	assert_in_range(budget_ask(&budget, 1 << 30, 3600 * SECOND_NS), 1, 200000);
}

static void slow_rates_move_too(void **state)
{
	struct budget budget;
	uint64_t moved = 0;

	budget_init(&budget, 60, 60000, 0, 0);
	for (uint64_t now = 0; now < 100 * SECOND_NS; now += SECOND_NS / 50) {
		size_t part = budget_ask(&budget, 4096, now);

		budget_use(&budget, part);
		moved += part;
	}
	assert_in_range(moved, 98, 102);
}

static void the_total_is_exact(void **state)
{
	struct budget budget;

	budget_init(&budget, 0, 0, 1000, 0);
	assert_int_equal(budget_ask(&budget, 600, 0), 600);
	budget_use(&budget, 600);
	assert_int_equal(budget_ask(&budget, 600, 0), 400);
	budget_use(&budget, 400);
	assert_true(budget_is_used_up(&budget));
	assert_int_equal(budget_ask(&budget, 1, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_limits_all_of_it),
		cmocka_unit_test(the_rate_holds_however_it_is_asked),
		cmocka_unit_test(slow_rates_move_too),
		cmocka_unit_test(the_total_is_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
