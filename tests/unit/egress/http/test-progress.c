/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "egress/http/progress.h"

/* How many looks it takes until a body that brings so much between two of them is given up; 0: it is not. */
static unsigned looks_until_end(struct progress *progress, uint64_t bytes_each)
{
	enum { LOOKS_MAX = 1000 };
	uint64_t bytes = 0;

	for (unsigned look = 1; look <= LOOKS_MAX; look++, bytes += bytes_each)
		if (progress_is_too_slow(progress, true, 1, bytes))
			return look;
	return 0;
}

static void test_what_trickles_is_given_up(void **state)
{
	uint64_t slow[] = { 0, 1, 1000, PROGRESS_BYTES / PROGRESS_LOOKS - 1 };

	for (size_t i = 0; i < sizeof slow / sizeof *slow; i++)
		assert_int_equal(looks_until_end(&(struct progress){ 0 }, slow[i]), PROGRESS_LOOKS + 1);
}

static void test_what_moves_goes_on(void **state)
{
	uint64_t fast[] = { PROGRESS_BYTES / PROGRESS_LOOKS + 1, PROGRESS_BYTES, UINT64_C(1) << 40 };

	for (size_t i = 0; i < sizeof fast / sizeof *fast; i++)
		assert_int_equal(looks_until_end(&(struct progress){ 0 }, fast[i]), 0);
}

/* In bursts, with pauses that are not too long. */
static void test_pauses(void **state)
{
	struct progress progress = { 0 };
	uint64_t bytes = 0;

	for (unsigned look = 0; look < 1000; look++) {
		assert_false(progress_is_too_slow(&progress, true, 1, bytes));
		if (look % (PROGRESS_LOOKS - 1) == 0)
			bytes += PROGRESS_BYTES;
	}
}

static void test_what_is_held_up_or_over_begins_anew(void **state)
{
	struct progress progress = { 0 };

	for (unsigned look = 0; look < 1000; look++)
		assert_false(progress_is_too_slow(&progress, look % PROGRESS_LOOKS != 0, 1, 0));
	/* Small messages one after the other, none of which is late. */
	progress = (struct progress){ 0 };
	for (unsigned look = 0; look < 1000; look++)
		assert_false(progress_is_too_slow(&progress, true, look / PROGRESS_LOOKS, look % PROGRESS_LOOKS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_trickles_is_given_up),
		cmocka_unit_test(test_what_moves_goes_on),
		cmocka_unit_test(test_pauses),
		cmocka_unit_test(test_what_is_held_up_or_over_begins_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
