/* SPDX-License-Identifier: Apache-2.0 */

/* Terminals: a pair works, has a size, becomes a controlling terminal, and goes raw and back. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>

#include "os/pty.h"

struct pair {
	int master, slave;
};

static int open_pair(void **state)
{
	static struct pair pair;

	*state = &pair;
	return pty_open(&pair.master, &pair.slave);
}

static int close_pair(void **state)
{
	struct pair *pair = *state;

	close_fd(&pair->master);
	close_fd(&pair->slave);
	return 0;
}

static void test_pair_passes_bytes(void **state)
{
	struct pair *pair = *state;
	char bytes[16];

	assert_true(isatty(pair->slave));
	assert_true(fcntl(pair->master, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(pair->slave, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(write(pair->master, "hi\n", 3), 3);
	assert_int_equal(read(pair->slave, bytes, sizeof bytes), 3);
	assert_memory_equal(bytes, "hi\n", 3);
}

static void test_size(void **state)
{
	struct pair *pair = *state;
	struct pty_size size = { .rows = 33, .columns = 101 };

	assert_int_equal(pty_set_size(pair->master, size), 0);
	size = (struct pty_size){ 0 };
	assert_int_equal(pty_get_size(pair->slave, &size), 0);
	assert_int_equal(size.rows, 33);
	assert_int_equal(size.columns, 101);
}

static void test_raw_and_back(void **state)
{
	struct pair *pair = *state;
	struct termios saved, now;
	char bytes[4];

	assert_int_equal(pty_make_raw(pair->slave, &saved), 0);
	assert_true(saved.c_lflag & ICANON);
	/* No line to wait for, and ^C is a byte. */
	assert_int_equal(write(pair->master, "\x03", 1), 1);
	assert_int_equal(read(pair->slave, bytes, sizeof bytes), 1);
	assert_int_equal(bytes[0], 3);
	assert_int_equal(pty_restore(pair->slave, &saved), 0);
	assert_int_equal(tcgetattr(pair->slave, &now), 0);
	assert_int_equal(now.c_lflag, saved.c_lflag);
	assert_int_equal(now.c_iflag, saved.c_iflag);
}

static void test_controlling_terminal(void **state)
{
	struct pair *pair = *state;
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		/* Opening the pair made it nobody's; only a session leader may take it. */
		if (pty_take_control(pair->slave) != -EPERM || setsid() < 0 || open("/dev/tty", O_RDWR) >= 0)
			_exit(1);
		if (pty_take_control(pair->slave) != 0 || open("/dev/tty", O_RDWR) < 0)
			_exit(2);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_what_is_no_terminal(void **state)
{
	cleanup_fd int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct pty_size size = { 0 };
	struct termios saved;

	assert_int_equal(pty_get_size(fd, &size), -ENOTTY);
	assert_int_equal(pty_set_size(fd, size), -ENOTTY);
	assert_int_equal(pty_make_raw(fd, &saved), -ENOTTY);
	assert_int_equal(pty_take_control(fd), -ENOTTY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_pair_passes_bytes, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(test_size, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(test_raw_and_back, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(test_controlling_terminal, open_pair, close_pair),
		cmocka_unit_test(test_what_is_no_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
