/* SPDX-License-Identifier: Apache-2.0 */

/* How far the processes below one may let files grow, from outside: what they see, and who keeps what it had. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/remote/file-size.h"

enum { SMALL = 4096, LARGE = 1 << 20 };

struct peer {
	pid_t pid;
	int ask, answer; /* pipes: one byte asks, an int comes back */
};

/* Appends one block to its file for each byte that it is sent, and says what came of it. */
static void write_when_asked(int ask, int answer)
{
	static const char block[SMALL];
	char name[] = "/tmp/atoll-file-size-XXXXXX", byte;
	int fd = mkstemp(name);

	unlink(name);
	signal(SIGXFSZ, SIG_IGN);
	while (read(ask, &byte, 1) == 1) {
		int errnum = write(fd, block, sizeof block) == sizeof block ? 0 : errno;

		if (write(answer, &errnum, sizeof errnum) != sizeof errnum)
			break;
	}
	_exit(0);
}

/* A first process with a child, both of which write. own: what the child sets for itself before; 0: nothing. */
static void start(struct peer *first, struct peer *child, rlim_t own)
{
	int ask[2][2], answer[2][2], told[2];

	for (int i = 0; i < 2; i++)
		assert_true(pipe(ask[i]) == 0 && pipe(answer[i]) == 0);
	assert_int_equal(pipe(told), 0);
	first->pid = fork();
	if (first->pid == 0) {
		pid_t pid = fork();

		for (int i = 0; i < 2; i++) {
			close(ask[i][1]);
			close(answer[i][0]);
		}
		if (pid == 0 && own) {
			struct rlimit limit = { own, RLIM_INFINITY };

			setrlimit(RLIMIT_FSIZE, &limit);
		}
		if (pid > 0)
			write_when_asked(ask[0][0], answer[0][1]);
		/* The child says who it is itself, and only now: whoever has heard of it finds its limit set. */
		pid = getpid();
		if (write(told[1], &pid, sizeof pid) == sizeof pid)
			write_when_asked(ask[1][0], answer[1][1]);
		_exit(1);
	}
	assert_int_equal(read(told[0], &child->pid, sizeof child->pid), sizeof child->pid);
	close(told[0]);
	close(told[1]);
	for (int i = 0; i < 2; i++) {
		struct peer *peer = i ? child : first;

		peer->ask = ask[i][1];
		peer->answer = answer[i][0];
		close(ask[i][0]);
		close(answer[i][1]);
	}
}

static int ask(const struct peer *peer)
{
	int errnum = -1;

	assert_int_equal(write(peer->ask, "x", 1), 1);
	assert_int_equal(read(peer->answer, &errnum, sizeof errnum), sizeof errnum);
	return errnum;
}

static void end(struct peer *first, struct peer *child)
{
	close(child->ask);
	close(child->answer);
	close(first->ask);
	close(first->answer);
	assert_int_equal(waitpid(first->pid, NULL, 0), first->pid);
}

static rlim_t soft_of(pid_t pid)
{
	struct rlimit limit;

	assert_int_equal(prlimit(pid, RLIMIT_FSIZE, NULL, &limit), 0);
	return limit.rlim_cur;
}

static void all_below_are_held_up_and_let_go(void **state)
{
	struct peer first, child;
	struct rlimit mine;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &mine), 0);
	start(&first, &child, 0);
	/* Positive control. */
	assert_int_equal(ask(&first) | ask(&child), 0);
	assert_int_equal(file_size_lower(first.pid, SMALL), 0);
	assert_int_equal(ask(&first), EFBIG);
	assert_int_equal(ask(&child), EFBIG);
	assert_true(soft_of(getpid()) == mine.rlim_cur);
	assert_int_equal(file_size_lower(first.pid, SMALL), 0);
	assert_int_equal(file_size_restore(first.pid, SMALL, UINT64_MAX), 0);
	assert_int_equal(ask(&first) | ask(&child), 0);
	end(&first, &child);
}

/* What a program has set for itself is its own affair, before and afterwards. */
static void who_has_less_keeps_it(void **state)
{
	struct peer first, child;

	start(&first, &child, SMALL / 2);
	assert_int_equal(file_size_lower(first.pid, SMALL), 0);
	assert_true(soft_of(child.pid) == SMALL / 2 && soft_of(first.pid) == SMALL);
	assert_int_equal(file_size_restore(first.pid, SMALL, LARGE), 0);
	assert_true(soft_of(child.pid) == SMALL / 2 && soft_of(first.pid) == LARGE);
	end(&first, &child);
}

static void nobody_is_there(void **state)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(file_size_lower(pid, SMALL), -ESRCH);
	assert_int_equal(file_size_restore(pid, SMALL, UINT64_MAX), -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_below_are_held_up_and_let_go),
		cmocka_unit_test(who_has_less_keeps_it),
		cmocka_unit_test(nobody_is_there),
	};

	return cmocka_run_group_tests_name("file-size", tests, NULL, NULL);
}
