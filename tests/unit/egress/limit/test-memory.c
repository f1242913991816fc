/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "egress/limit/memory.h"

enum { SHARES = 8, MIB = 1 << 20 };

static struct {
	struct event_base *base;
	struct memory_budget memory;
	struct memory_share shares[SHARES];
	int ended[SHARES], count;
} here;

static void on_most(void *context)
{
	struct memory_share *share = context;

	here.ended[here.count++] = (int)(share - here.shares);
	memory_close(share);
}

static int begin(void **state)
{
	here.base = event_base_new();
	here.count = 0;
	if (memory_init(&here.memory, here.base) < 0)
		return -1;
	for (size_t i = 0; i < SHARES; i++)
		memory_open(&here.memory, &here.shares[i], on_most, &here.shares[i]);
	return 0;
}

static int end(void **state)
{
	for (size_t i = 0; i < SHARES; i++)
		memory_close(&here.shares[i]);
	assert_int_equal(here.memory.bytes, 0);
	assert_int_equal(here.memory.count, 0);
	event_del(&here.memory.relief);
	event_base_free(here.base);
	return 0;
}

static void who_has_more_than_its_part_is_short_when_there_is_much(void **state)
{
	memory_set(&here.shares[0], 20 * MIB);
	memory_set(&here.shares[1], 1 * MIB);
	assert_false(memory_is_short(&here.shares[0]));
	memory_set(&here.shares[2], 12 * MIB);
	assert_true(memory_is_short(&here.shares[0]));
	assert_true(memory_is_short(&here.shares[2]));
	assert_false(memory_is_short(&here.shares[1]));
	memory_set(&here.shares[0], 0);
	assert_false(memory_is_short(&here.shares[2]));
	event_base_loop(here.base, EVLOOP_NONBLOCK);
	assert_int_equal(here.count, 0);
}

static void who_has_the_most_is_ended_when_there_is_too_much(void **state)
{
	for (size_t i = 0; i < SHARES; i++)
		memory_set(&here.shares[i], (9 + i) * MIB);
	assert_int_equal(here.count, 0);
	event_base_loop(here.base, EVLOOP_NONBLOCK);
	/* 100 MiB: those with 16, 15 and 14. */
	assert_int_equal(here.count, 3);
	assert_int_equal(here.ended[0], 7);
	assert_int_equal(here.ended[2], 5);
	assert_int_equal(here.memory.bytes, 55 * MIB);
	/* One that is closed counts no more. */
	memory_set(&here.shares[7], 50 * MIB);
	assert_int_equal(here.memory.bytes, 55 * MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_has_more_than_its_part_is_short_when_there_is_much, begin, end),
		cmocka_unit_test_setup_teardown(who_has_the_most_is_ended_when_there_is_too_much, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
