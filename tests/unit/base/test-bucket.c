/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bucket.h"

#define SECOND_NS 1000000000ULL

static const struct bucket_limit limit = { .amount = 60, .period_ms = 60000, .capacity = 3 };

static int take_token(struct bucket *bucket, uint64_t now_ns)
{
	if (bucket_fill(bucket, &limit, now_ns) < 1)
		return 0;
	bucket->tokens -= 1;
	return 1;
}

static void what_is_saved_up_goes_at_once(void **state)
{
	struct bucket bucket = bucket_start(&limit, 5 * SECOND_NS);

	for (int i = 0; i < 3; i++)
		assert_true(take_token(&bucket, 5 * SECOND_NS));
	assert_false(take_token(&bucket, 5 * SECOND_NS));
	assert_in_range(bucket_wait_ms(&bucket, &limit), 1000, 1001);
	assert_true(take_token(&bucket, 6 * SECOND_NS));
	assert_false(take_token(&bucket, 6 * SECOND_NS));
	/* Never more than the capacity, however long it rests; and a clock that goes back gives nothing. */
	for (int i = 0; i < 3; i++)
		assert_true(take_token(&bucket, 6000 * SECOND_NS));
	assert_false(take_token(&bucket, 6000 * SECOND_NS));
	assert_false(take_token(&bucket, SECOND_NS));
	assert_int_equal(bucket_wait_ms(&(struct bucket){ 1, 0 }, &limit), 0);
}

static void less_than_one_is_saved_up_as_one(void **state)
{
	const struct bucket_limit slow = { .amount = 1, .period_ms = 3600000, .capacity = 0.01 };
	struct bucket bucket = bucket_start(&slow, SECOND_NS);

	assert_true(bucket_fill(&bucket, &slow, SECOND_NS) >= 1);
	bucket.tokens = 0;
	assert_in_range(bucket_wait_ms(&bucket, &slow), 3600000, 3600001);
	assert_true(bucket_fill(&bucket, &slow, 3602 * SECOND_NS) >= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_saved_up_goes_at_once),
		cmocka_unit_test(less_than_one_is_saved_up_as_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
