/* SPDX-License-Identifier: Apache-2.0 */

/* Things counted by their name: each once, in order, and never more than the bound. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "learn/tally.h"

static void each_is_kept_once_and_in_order(void **state)
{
	struct tally tally;
	struct tally_item *item;

	assert_int_equal(tally_init(&tally, 8), 0);
	assert_int_equal(tally_add(&tally, "b", 2, &item), 1);
	assert_int_equal(tally_tell(item, 7, "cat"), 0);
	assert_int_equal(tally_add(&tally, "a", 1, &item), 1);
	assert_int_equal(tally_add(&tally, "b", 3, &item), 0);
	assert_int_equal(item->count, 5);
	assert_int_equal(item->record, 7);
	assert_string_equal(item->by, "cat");
	assert_int_equal(tally.count, 2);
	assert_string_equal(tally.items[0].key, "b");
	assert_string_equal(tally.items[1].key, "a");
	tally_done(&tally);
}

static void what_has_no_room_is_counted(void **state)
{
	struct tally tally;
	struct tally_item *item;
	char key[32];

	assert_int_equal(tally_init(&tally, 100), 0);
	for (int i = 0; i < 1000; i++) {
		snprintf(key, sizeof key, "key %d", i);
		assert_int_equal(tally_add(&tally, key, 2, &item), i < 100);
		assert_int_equal(item != NULL, i < 100);
	}
	assert_int_equal(tally.count, 100);
	assert_int_equal(tally.left_out, 1800);
	/* What is in it is still found. */
	assert_int_equal(tally_add(&tally, "key 99", 1, &item), 0);
	assert_int_equal(item->count, 3);
	tally_done(&tally);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_kept_once_and_in_order),
		cmocka_unit_test(what_has_no_room_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
