/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gate-exec/dry-run-budget.h"

#define EVERY_NS (TRIAL_EVERY_MS * 1000000ULL)

static void take_all(struct dry_run_budget *budget, uint64_t now_ns)
{
	for (int i = 0; i < TRIALS_SAVED_MAX; i++)
		assert_true(dry_run_budget_take(budget, now_ns));
	assert_false(dry_run_budget_take(budget, now_ns));
}

static void a_burst_is_bounded(void **state)
{
	struct dry_run_budget budget = { .is_begun = false };

	take_all(&budget, 7 * EVERY_NS);
	/* Who tries on takes nothing from what comes. */
	for (int i = 0; i < 1000; i++)
		assert_false(dry_run_budget_take(&budget, 7 * EVERY_NS + 1));
	assert_true(dry_run_budget_take(&budget, 8 * EVERY_NS + 2));
	assert_false(dry_run_budget_take(&budget, 8 * EVERY_NS + 2));
}

static void no_more_is_saved_up_than_a_burst(void **state)
{
	struct dry_run_budget budget = { .is_begun = false };

	take_all(&budget, EVERY_NS);
	take_all(&budget, 100000 * EVERY_NS);
	/* A clock that stands still or goes back gives nothing. */
	assert_false(dry_run_budget_take(&budget, EVERY_NS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_burst_is_bounded),
		cmocka_unit_test(no_more_is_saved_up_than_a_burst),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
