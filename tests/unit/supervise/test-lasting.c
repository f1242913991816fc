/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "os/fd.h"
#include "supervise/lasting.h"
#include "supervise/loop.h"
#include "supervise/stdio.h"

enum { ALL = 1 << STDIO_IN | 1 << STDIO_OUT | 1 << STDIO_ERR, PIECE = 4 << 10, MUCH = 3 * LASTING_RING_SIZE / 2 };

struct here {
	struct loop loop;
	struct ring_budget budget;
	struct lasting_owner owner;
	struct lasting *lasting;
	int inside[3];           /* the command's ends */
	uint64_t seen, written;
};

static int on_output(void *context, uint64_t n)
{
	((struct here *)context)->seen += n;
	return 0;
}

static int setup(void **state)
{
	struct here *here = calloc(1, sizeof *here);

	assert_non_null(here);
	*state = here;
	here->budget.max = LASTING_BUDGET_SIZE;
	here->owner = (struct lasting_owner){ &here->loop, &here->budget, on_output, here };
	assert_int_equal(loop_init(&here->loop), 0);
	assert_int_equal(lasting_new(&here->lasting, &here->owner, ALL, here->inside), 0);
	return 0;
}

static int teardown(void **state)
{
	struct here *here = *state;

	lasting_free(here->lasting);
	assert_int_equal(here->budget.used, 0);
	for (int i = 0; i < 3; i++)
		close_fd(&here->inside[i]);
	loop_done(&here->loop);
	free(here);
	return 0;
}

static uint8_t byte_at(uint64_t position)
{
	return (uint8_t)(position * 31 + position / 251);
}

/* The command writes, and the loop takes all of it. */
static void write_output(struct here *here, size_t size)
{
	uint8_t piece[PIECE];

	while (size) {
		size_t now = size < sizeof piece ? size : sizeof piece;

		for (size_t i = 0; i < now; i++)
			piece[i] = byte_at(here->written + i);
		assert_int_equal(write(here->inside[STDIO_OUT], piece, now), now);
		here->written += now;
		size -= now;
		while (here->seen < here->written)
			assert_true(loop_step(&here->loop, 1000) >= 0);
	}
}

/* What a client gets has these positions of the stream, and no more. */
static void expect_output(struct here *here, int fd, uint64_t from, uint64_t to)
{
	uint8_t bytes[PIECE];

	assert_int_equal(fd_set_nonblocking(fd, true), 0);
	while (from < to) {
		ssize_t n = read(fd, bytes, sizeof bytes);

		assert_true(n > 0 || (n < 0 && errno == EAGAIN));
		for (ssize_t i = 0; i < n; i++)
			assert_int_equal(bytes[i], byte_at(from + (uint64_t)i));
		from += n > 0 ? (uint64_t)n : 0;
		assert_true(loop_step(&here->loop, n < 0 ? 1000 : 0) >= 0);
	}
	assert_int_equal(from, to);
	assert_true(read(fd, bytes, 1) <= 0);
}

static void attach(struct here *here, bool is_fresh, int fds[3])
{
	for (int i = 0; i < 3; i++)
		fds[i] = FD_NONE;
	assert_int_equal(lasting_attach_new(here->lasting, true, is_fresh, fds), 0);
}

static void leave(struct here *here, int fds[3])
{
	struct lasting_state now;
	unsigned before;

	lasting_look(here->lasting, &now);
	before = now.attached;
	for (int i = 0; i < 3; i++)
		close_fd(&fds[i]);
	while (now.attached >= before) {
		assert_true(loop_step(&here->loop, 1000) >= 0);
		lasting_look(here->lasting, &now);
	}
}

static void without_a_client_the_newest_stays_and_the_rest_is_counted(void **state)
{
	struct here *here = *state;
	struct lasting_state now;
	int fds[3];

	write_output(here, MUCH);
	lasting_look(here->lasting, &now);
	assert_true(now.has_ring && !now.is_terminal && !now.attached);
	assert_int_equal(now.dropped, MUCH - LASTING_RING_SIZE);
	assert_int_equal(here->budget.used, LASTING_RING_SIZE);
	attach(here, false, fds);
	expect_output(here, fds[STDIO_OUT], MUCH - LASTING_RING_SIZE, MUCH);
	/* From here on nothing is lost, and nothing of the old comes again. */
	write_output(here, PIECE);
	expect_output(here, fds[STDIO_OUT], MUCH, MUCH + PIECE);
	lasting_look(here->lasting, &now);
	assert_int_equal(now.dropped, MUCH - LASTING_RING_SIZE);
	assert_int_equal(now.attached, 1);
	leave(here, fds);
}

static void who_comes_afresh_gets_nothing_old(void **state)
{
	struct here *here = *state;
	int fds[3];

	write_output(here, MUCH);
	attach(here, true, fds);
	/* The first piece of each stream. */
	assert_true(here->budget.used <= 2 * PIECE);
	write_output(here, 100);
	expect_output(here, fds[STDIO_OUT], MUCH, MUCH + 100);
	leave(here, fds);
}

static void one_that_left_leaves_the_rest_to_the_next(void **state)
{
	struct here *here = *state;
	int first[3], second[3];

	attach(here, false, first);
	write_output(here, 10);
	expect_output(here, first[STDIO_OUT], 0, 10);
	leave(here, first);
	write_output(here, PIECE);
	attach(here, false, second);
	expect_output(here, second[STDIO_OUT], 10, 10 + PIECE);
	leave(here, second);
}

static void all_that_are_attached_get_it_and_their_number_is_bounded(void **state)
{
	struct here *here = *state;
	int fds[LASTING_CLIENTS_MAX][3], more[3] = { FD_NONE, FD_NONE, FD_NONE };
	struct lasting_state now;

	for (size_t i = 0; i < LASTING_CLIENTS_MAX; i++)
		attach(here, false, fds[i]);
	assert_int_equal(lasting_attach_new(here->lasting, true, false, more), -EAGAIN);
	for (int i = 0; i < 3; i++)
		assert_int_equal(more[i], FD_NONE);
	lasting_look(here->lasting, &now);
	assert_int_equal(now.attached, LASTING_CLIENTS_MAX);
	write_output(here, PIECE);
	for (size_t i = 0; i < LASTING_CLIENTS_MAX; i++)
		expect_output(here, fds[i][STDIO_OUT], 0, PIECE);
	for (size_t i = 0; i < LASTING_CLIENTS_MAX; i++)
		leave(here, fds[i]);
	attach(here, false, more);
	leave(here, more);
}

static void ends_of_another_kind_are_refused_and_closed(void **state)
{
	struct here *here = *state;
	int fds[3] = { FD_NONE, open("/dev/null", O_WRONLY | O_CLOEXEC), FD_NONE }, fd = fds[1];

	assert_int_equal(lasting_attach(here->lasting, fds, false), -EINVAL);
	assert_int_equal(fds[1], FD_NONE);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

/* After its end, what is in the ring is there for who comes, and then the end. */
static void after_its_end_the_rest_is_read_once(void **state)
{
	struct here *here = *state;
	uint8_t byte;
	int fds[3];

	write_output(here, PIECE);
	assert_int_equal(write(here->inside[STDIO_OUT], "", 1), 1);
	lasting_end(here->lasting);
	assert_int_equal(here->seen, PIECE + 1);
	assert_true(lasting_is_settled(here->lasting));
	assert_true(lasting_is_drained(here->lasting));
	attach(here, false, fds);
	assert_int_equal(fds[STDIO_IN], FD_NONE);
	for (uint64_t i = 0; i < PIECE; i++) {
		assert_int_equal(read(fds[STDIO_OUT], &byte, 1), 1);
		assert_int_equal(byte, byte_at(i));
	}
	assert_int_equal(read(fds[STDIO_OUT], &byte, 1), 1);
	assert_int_equal(read(fds[STDIO_OUT], &byte, 1), 0);
	assert_true(lasting_is_drained(here->lasting));
	assert_int_equal(here->budget.used, 0);
	for (int i = 0; i < 3; i++)
		close_fd(&fds[i]);
}

static void its_input_ends_behind_what_was_written(void **state)
{
	struct here *here = *state;
	int fds[3], late[3];
	char got[8];

	attach(here, false, fds);
	assert_int_equal(write(fds[STDIO_IN], "hello", 5), 5);
	assert_int_equal(lasting_close_input(here->lasting), 0);
	assert_int_equal(lasting_close_input(here->lasting), 0);
	for (int i = 0; i < 100 && lasting_moved(here->lasting) < 5; i++)
		assert_true(loop_step(&here->loop, 100) >= 0);
	lasting_check(here->lasting);
	assert_int_equal(read(here->inside[STDIO_IN], got, sizeof got), 5);
	assert_int_equal(read(here->inside[STDIO_IN], got, sizeof got), 0);
	attach(here, false, late);
	assert_int_equal(late[STDIO_IN], FD_NONE);
	assert_int_equal(lasting_resize(here->lasting, 1, 1), -ENOTTY);
	leave(here, late);
	leave(here, fds);
}

/* Many commands of one sandbox: its budget, and a first piece for each. */
static void a_sandbox_has_one_budget(void **state)
{
	enum { COUNT = 6 };
	struct here *here = *state;
	struct here others[COUNT];
	struct lasting_state now;

	here->budget.max = LASTING_RING_SIZE;
	for (size_t i = 0; i < COUNT; i++) {
		others[i] = (struct here){ .owner = here->owner };
		others[i].owner.context = &others[i];
		assert_int_equal(lasting_new(&others[i].lasting, &others[i].owner, ALL, others[i].inside), 0);
	}
	for (size_t i = 0; i < COUNT; i++) {
		for (uint64_t n = 0; n < MUCH; n += PIECE) {
			static const uint8_t piece[PIECE];

			assert_int_equal(write(others[i].inside[STDIO_OUT], piece, PIECE), PIECE);
			while (others[i].seen < n + PIECE)
				assert_true(loop_step(&here->loop, 1000) >= 0);
		}
		lasting_look(others[i].lasting, &now);
		assert_int_equal(now.dropped, MUCH - (i ? PIECE : LASTING_RING_SIZE));
		assert_true(here->budget.used <= LASTING_RING_SIZE + i * PIECE);
	}
	for (size_t i = 0; i < COUNT; i++) {
		lasting_free(others[i].lasting);
		for (int j = 0; j < 3; j++)
			close_fd(&others[i].inside[j]);
	}
	assert_int_equal(here->budget.used, 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(without_a_client_the_newest_stays_and_the_rest_is_counted),
		CASE(who_comes_afresh_gets_nothing_old),
		CASE(one_that_left_leaves_the_rest_to_the_next),
		CASE(all_that_are_attached_get_it_and_their_number_is_bounded),
		CASE(ends_of_another_kind_are_refused_and_closed),
		CASE(after_its_end_the_rest_is_read_once),
		CASE(its_input_ends_behind_what_was_written),
		CASE(a_sandbox_has_one_budget),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
