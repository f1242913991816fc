/* SPDX-License-Identifier: Apache-2.0 */

/* Reading what somebody else wrote: never beyond the end, and a fault stays. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/view.h"

static const uint8_t bytes[] = { 0x01, 0x02, 0x03, 0x00, 0x02, 0xaa, 0xbb, 0xcc };

static void numbers_have_an_order(void **state)
{
	struct view view = { bytes, sizeof bytes, false }, again = view;

	assert_int_equal(view_take_le(&view, 3), 0x030201);
	assert_int_equal(view_take_be(&again, 3), 0x010203);
	assert_int_equal(view.left, 5);
	assert_false(view.is_bad || again.is_bad);
}

static void a_vector_is_a_view_of_its_own(void **state)
{
	struct view view = { bytes + 3, 5, false }, vector = view_take_vector(&view, 2);

	assert_int_equal(vector.left, 2);
	assert_int_equal(view_take_be(&vector, 2), 0xaabb);
	assert_null(view_take(&vector, 1));
	assert_true(vector.is_bad);
	assert_false(view.is_bad);
	assert_int_equal(view_take_be(&view, 1), 0xcc);
}

static void a_vector_longer_than_what_is_left_fails_both(void **state)
{
	struct view view = { bytes + 4, 2, false }, vector = view_take_vector(&view, 1);

	assert_true(vector.is_bad && view.is_bad);
	assert_int_equal(vector.left, 0);
}

static void a_fault_stays(void **state)
{
	struct view view = { bytes, 2, false };

	assert_int_equal(view_take_le(&view, 4), 0);
	assert_true(view.is_bad);
	assert_null(view_take(&view, 1));
	assert_int_equal(view_take_be(&view, 1), 0);
	assert_int_equal(view.left, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_have_an_order),
		cmocka_unit_test(a_vector_is_a_view_of_its_own),
		cmocka_unit_test(a_vector_longer_than_what_is_left_fails_both),
		cmocka_unit_test(a_fault_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
