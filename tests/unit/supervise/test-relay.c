/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <cmocka.h>

#include "os/fd.h"
#include "supervise/relay.h"
#include "supervise/stdio.h"

enum { BIG = 1 << 20 };

static uint64_t counted;

static int count(void *context, uint64_t n)
{
	counted += n;
	return 0;
}

static int temporary(void)
{
	char name[] = "/tmp/atolltest-relay-XXXXXX";
	int fd = mkostemp(name, O_CLOEXEC);

	assert_true(fd >= 0);
	unlink(name);
	return fd;
}

static void run_until_quiet(struct loop *loop)
{
	int r;

	do
		r = loop_step(loop, 50);
	while (r > 0);
	assert_int_equal(r, 0);
}

static void fill(int fd, size_t size)
{
	char block[4096];

	memset(block, 'x', sizeof block);
	for (; size; size -= sizeof block)
		assert_int_equal(fd_write_full(fd, block, sizeof block), 0);
}

static void bytes_reach_a_file_and_are_counted(void **state)
{
	struct relay relay = { .on_bytes = count };
	int ends[2], file = temporary();
	struct loop loop;

	counted = 0;
	assert_int_equal(loop_init(&loop), 0);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(relay_open(&relay, &loop, ends[0], dup(file)), 0);
	fill(ends[1], 32768);
	run_until_quiet(&loop);
	assert_int_equal(lseek(file, 0, SEEK_END), 32768);
	assert_int_equal(counted, 32768);
	close(ends[1]);
	run_until_quiet(&loop);
	assert_false(relay.is_open);
	close(file);
	loop_done(&loop);
}

static void a_full_pipe_does_not_block_and_its_flags_stay_the_users(void **state)
{
	struct relay relay = { 0 };
	int in[2], out[2];
	char block[4096];
	struct loop loop;
	size_t read_back = 0;
	ssize_t n;

	assert_int_equal(loop_init(&loop), 0);
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	fcntl(in[1], F_SETPIPE_SZ, BIG);
	assert_int_equal(relay_open(&relay, &loop, in[0], dup(out[1])), 0);
	fill(in[1], BIG / 2);
	close(in[1]);
	run_until_quiet(&loop);
	assert_true(relay.is_open);
	assert_false(fcntl(out[1], F_GETFL) & O_NONBLOCK);
	close(out[1]);
	assert_int_equal(fd_set_nonblocking(out[0], true), 0);
	while (relay.is_open || read_back < BIG / 2) {
		n = read(out[0], block, sizeof block);
		if (n > 0)
			read_back += (size_t)n;
		else
			assert_true(loop_step(&loop, 1000) > 0);
	}
	assert_int_equal(read_back, BIG / 2);
	close(out[0]);
	loop_done(&loop);
}

/* `atoll exec` hung where its caller read only after the command's end: a slot of the pipe was taken for each line. */
static void short_lines_that_nobody_reads_yet_do_not_fill_a_pipe(void **state)
{
	enum { LINES = 40 };
	struct relay relay = { .on_bytes = count };
	int in[2], out[2], waiting = 0;
	struct loop loop;

	assert_int_equal(loop_init(&loop), 0);
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_true(fcntl(out[1], F_SETPIPE_SZ, 4096) == 4096); /* as it is where a user has many pipes */
	assert_int_equal(relay_open(&relay, &loop, in[0], out[1]), 0);
	for (int i = 0; i < LINES; i++) {
		assert_int_equal(fd_write_full(in[1], "a line\n", 7), 0);
		assert_true(loop_step(&loop, 1000) > 0);
	}
	assert_int_equal(ioctl(out[0], FIONREAD, &waiting), 0);
	assert_int_equal(waiting, LINES * 7);
	assert_null(relay.pending);
	close(in[1]);
	run_until_quiet(&loop);
	assert_false(relay.is_open);
	close(out[0]);
	loop_done(&loop);
}

static void a_reader_that_leaves_breaks_the_pipe_inside(void **state)
{
	struct relay relay = { 0 };
	int in[2], out[2];
	struct loop loop;

	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(loop_init(&loop), 0);
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(relay_open(&relay, &loop, in[0], out[1]), 0);
	close(out[0]);
	fill(in[1], 4096);
	run_until_quiet(&loop);
	assert_false(relay.is_open);
	assert_int_equal(write(in[1], "x", 1), -1);
	assert_int_equal(errno, EPIPE);
	close(in[1]);
	loop_done(&loop);
}

static void a_socket_gets_everything_without_being_made_nonblocking(void **state)
{
	struct relay relay = { 0 };
	int in[2], out[2];
	char block[8192];
	struct loop loop;
	size_t got = 0;

	assert_int_equal(loop_init(&loop), 0);
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, out), 0);
	fcntl(in[1], F_SETPIPE_SZ, BIG);
	assert_int_equal(relay_open(&relay, &loop, in[0], dup(out[1])), 0);
	fill(in[1], BIG);
	close(in[1]);
	while (relay.is_open || got < BIG) {
		ssize_t n = recv(out[0], block, sizeof block, MSG_DONTWAIT);

		if (n > 0)
			got += (size_t)n;
		else
			assert_true(loop_step(&loop, 1000) > 0);
	}
	assert_int_equal(got, BIG);
	assert_false(fcntl(out[1], F_GETFL) & O_NONBLOCK);
	close(out[0]);
	close(out[1]);
	loop_done(&loop);
}

static void what_was_not_read_of_a_file_is_given_back(void **state)
{
	int file = temporary(), null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int fds[STDIO_COUNT] = { file, null, null };
	struct stdio streams;
	char line[6];
	struct loop loop;

	assert_int_equal(loop_init(&loop), 0);
	assert_int_equal(write(file, "first\nsecond\n", 13), 13);
	lseek(file, 0, SEEK_SET);
	assert_int_equal(stdio_open(&streams, &loop, fds, STDIO_ALL, NULL, NULL), 0);
	run_until_quiet(&loop);
	assert_int_equal(read(streams.inside[STDIO_IN], line, 6), 6);
	assert_memory_equal(line, "first\n", 6);
	stdio_close(&streams);
	assert_int_equal(lseek(file, 0, SEEK_CUR), 6);
	close(file);
	close(null);
	loop_done(&loop);
}

static void one_file_for_both_outputs_is_one_pipe_and_keeps_the_order(void **state)
{
	int file = temporary(), null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int fds[STDIO_COUNT] = { null, file, file };
	struct stdio streams;
	char text[5] = "";
	struct loop loop;

	assert_int_equal(loop_init(&loop), 0);
	assert_int_equal(stdio_open(&streams, &loop, fds, STDIO_ALL, NULL, NULL), 0);
	assert_int_equal(write(streams.inside[STDIO_OUT], "a", 1), 1);
	assert_int_equal(write(streams.inside[STDIO_ERR], "b", 1), 1);
	assert_int_equal(write(streams.inside[STDIO_OUT], "c", 1), 1);
	run_until_quiet(&loop);
	assert_int_equal(pread(file, text, 4, 0), 3);
	assert_string_equal(text, "abc");
	stdio_close(&streams);
	close(file);
	close(null);
	loop_done(&loop);
}

static void a_directory_as_stdin_is_not_handed_in(void **state)
{
	int dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int fds[STDIO_COUNT] = { dir, null, null };
	struct stdio streams;
	struct loop loop;

	assert_int_equal(loop_init(&loop), 0);
	assert_int_equal(stdio_open(&streams, &loop, fds, STDIO_ALL, NULL, NULL), 0);
	assert_true(fd_is_same_file(streams.inside[STDIO_IN], null));
	stdio_close(&streams);
	close(dir);
	close(null);
	loop_done(&loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_reach_a_file_and_are_counted),
		cmocka_unit_test(a_full_pipe_does_not_block_and_its_flags_stay_the_users),
		cmocka_unit_test(short_lines_that_nobody_reads_yet_do_not_fill_a_pipe),
		cmocka_unit_test(a_reader_that_leaves_breaks_the_pipe_inside),
		cmocka_unit_test(a_socket_gets_everything_without_being_made_nonblocking),
		cmocka_unit_test(what_was_not_read_of_a_file_is_given_back),
		cmocka_unit_test(one_file_for_both_outputs_is_one_pipe_and_keeps_the_order),
		cmocka_unit_test(a_directory_as_stdin_is_not_handed_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
