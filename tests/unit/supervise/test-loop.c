/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "supervise/loop.h"

struct counter {
	struct loop_source source;
	unsigned ran;
	struct loop *loop;           /* not NULL: it takes itself out */
};

static int count(void *context, uint32_t events)
{
	struct counter *counter = context;

	counter->ran++;
	if (counter->loop)
		loop_remove(counter->loop, &counter->source);
	return 0;
}

/* Readable, and stays so. */
static struct counter ready_counter(void)
{
	struct counter counter = { .source = { .events = 1 /* EPOLLIN */, .ready = count } };

	counter.source.fd = eventfd(1, EFD_CLOEXEC);
	assert_true(counter.source.fd >= 0);
	return counter;
}

static void who_is_first_and_the_others_take_turns(void **state)
{
	struct counter first = ready_counter(), other = ready_counter();
	struct loop loop;

	first.source.context = &first;
	other.source.context = &other;
	assert_int_equal(loop_init(&loop), 0);
	loop_add_first(&loop, &first.source);
	assert_int_equal(loop_add(&loop, &other.source), 0);
	for (int i = 0; i < 10; i++)
		assert_int_equal(loop_step(&loop, -1), 1);
	assert_int_equal(first.ran, 5);
	assert_int_equal(other.ran, 5);
	loop_remove(&loop, &other.source);
	for (int i = 0; i < 3; i++)
		assert_int_equal(loop_step(&loop, -1), 1);
	assert_int_equal(first.ran, 8);
	close(first.source.fd);
	close(other.source.fd);
	loop_done(&loop);
}

static void who_is_first_can_take_itself_out(void **state)
{
	struct counter first = ready_counter(), other = ready_counter();
	struct loop loop;

	first.source.context = &first;
	first.loop = &loop;
	other.source.context = &other;
	assert_int_equal(loop_init(&loop), 0);
	loop_add_first(&loop, &first.source);
	assert_int_equal(loop_step(&loop, -1), 1);
	assert_int_equal(loop_step(&loop, 0), 0);
	assert_int_equal(loop_add(&loop, &other.source), 0);
	assert_int_equal(loop_step(&loop, -1), 1);
	assert_int_equal(first.ran, 1);
	assert_int_equal(other.ran, 1);
	close(first.source.fd);
	close(other.source.fd);
	loop_done(&loop);
}

static void nothing_ready_is_time_up(void **state)
{
	struct counter first = ready_counter();
	struct loop loop;
	uint64_t taken;

	first.source.context = &first;
	assert_int_equal(read(first.source.fd, &taken, sizeof taken), sizeof taken);
	assert_int_equal(loop_init(&loop), 0);
	loop_add_first(&loop, &first.source);
	assert_int_equal(loop_step(&loop, 1), 0);
	assert_int_equal(first.ran, 0);
	close(first.source.fd);
	loop_done(&loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_first_and_the_others_take_turns),
		cmocka_unit_test(who_is_first_can_take_itself_out),
		cmocka_unit_test(nothing_ready_is_time_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
