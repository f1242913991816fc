/* SPDX-License-Identifier: Apache-2.0 */

/* Real processes that are held at their exec: what is let through, what takes too long, and who was not meant. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "guest.h"
#include "os/fd.h"
#include "watch/exec-stop.h"

static struct {
	int images, overs, lates, errnum;
	uint64_t token;
	int verdict;   /* of on_image */
} seen;

static int on_image(void *context, uint64_t token, pid_t pid)
{
	seen.images++;
	seen.token = token;
	return seen.verdict;
}

static void on_over(void *context, uint64_t token)
{
	seen.overs++;
	seen.token = token;
}

static int on_late(void *context, uint64_t token, pid_t tid, int errnum)
{
	seen.lates++;
	seen.token = token;
	seen.errnum = errnum;
	return 0;
}

static const struct exec_stop_events events = { on_image, on_over, on_late, NULL };

/* A copy of a program, so that a lease on it is ours. */
static char program[64];

static void copy_program(void)
{
	cleanup_free char *bytes = NULL;
	size_t size;
	int r = fd_read_file_at(AT_FDCWD, "/bin/true", 16 << 20, &bytes, &size);

	if (r == 0 && str_format(program, sizeof program, "/tmp/atolltest-held-%d", getpid()) == 0)
		r = fd_replace_file_at(AT_FDCWD, program, bytes, size, 0755);
	if (r < 0)
		abort();
}

/* Executes the program once a byte comes, or the pipe ends. */
static pid_t start_guest(int *ret_go)
{
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		char *argv[] = { program, NULL };
		char byte;

		close(ends[1]);
		(void)!read(ends[0], &byte, 1);
		execv(program, argv);
		_exit(errno);
	}
	close(ends[0]);
	*ret_go = ends[1];
	return pid;
}

/* Until nothing is held any more, or for 10 s. */
static void serve(struct exec_stops *held)
{
	for (int i = 0; i < 200 && held->count; i++) {
		struct pollfd polled[] = { { .fd = held->signal_fd, .events = POLLIN },
					   { .fd = held->timer_fd, .events = POLLIN } };

		poll(polled, 2, 50);
		assert_int_equal(exec_stop_look(held, &events), 0);
	}
	assert_int_equal(held->count, 0);
}

static int end_of(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static void a_program_is_held_and_let_go(void **state)
{
	struct exec_stops held;
	uint64_t before;
	pid_t pid;
	int go;

	memset(&seen, 0, sizeof seen);
	exec_stop_init(&held);
	pid = start_guest(&go);
	assert_int_equal(exec_stop_begin(&held, pid, 7, &before), 0);
	close(go);
	serve(&held);
	assert_int_equal(seen.images, 1);
	assert_int_equal(seen.token, 7);
	assert_int_equal(seen.overs + seen.lates, 0);
	assert_int_equal(end_of(pid), 0);
	exec_stop_done(&held);
}

static void what_is_refused_does_not_run(void **state)
{
	struct exec_stops held;
	uint64_t before;
	pid_t pid;
	int go;

	memset(&seen, 0, sizeof seen);
	seen.verdict = 1;
	exec_stop_init(&held);
	pid = start_guest(&go);
	assert_int_equal(exec_stop_begin(&held, pid, 7, &before), 0);
	close(go);
	serve(&held);
	assert_int_equal(seen.images, 1);
	/* It was waited for when it was looked at. */
	assert_int_equal(kill(pid, 0), -1);
	exec_stop_done(&held);
}

/* A lease holds whoever opens the file, the kernel that executes it too, for 45 s. */
static void an_exec_that_takes_too_long_is_killed(void **state)
{
	struct exec_stops held;
	uint64_t before;
	int go, lease;
	pid_t pid;

	memset(&seen, 0, sizeof seen);
	signal(SIGIO, SIG_IGN);
	lease = open(program, O_RDONLY | O_CLOEXEC);
	assert_true(lease >= 0);
	assert_int_equal(fcntl(lease, F_SETLEASE, F_WRLCK), 0);
	exec_stop_init(&held);
	held.limit_ms = 200;
	pid = start_guest(&go);
	assert_int_equal(exec_stop_begin(&held, pid, 9, &before), 0);
	close(go);
	serve(&held);
	assert_int_equal(seen.lates, 1);
	assert_int_equal(seen.errnum, ETIMEDOUT);
	assert_int_equal(seen.token, 9);
	assert_int_equal(seen.images + seen.overs, 0);
	assert_int_equal(kill(pid, 0), -1);
	exec_stop_done(&held);
	close(lease);
}

static bool is_traced(pid_t pid)
{
	cleanup_free char *text = NULL;
	char path[32];
	size_t size;

	assert_int_equal(str_format(path, sizeof path, "/proc/%d/status", pid), 0);
	assert_int_equal(fd_read_file_at(AT_FDCWD, path, 64 << 10, &text, &size), 0);
	return !strstr(text, "\nTracerPid:\t0\n");
}

/* Its number was another's by the time that it was seized: that one goes on as if nothing had been. */
static void who_was_not_meant_is_let_go(void **state)
{
	struct exec_stops held;
	uint64_t before;
	pid_t pid;
	int go;

	memset(&seen, 0, sizeof seen);
	exec_stop_init(&held);
	held.limit_ms = 1;
	pid = start_guest(&go);
	assert_int_equal(exec_stop_begin(&held, pid, 11, &before), 0);
	assert_true(is_traced(pid));
	exec_stop_abandon(&held, pid);
	serve(&held);
	assert_false(is_traced(pid));
	assert_int_equal(seen.images + seen.overs + seen.lates, 0);
	/* And executes what it likes, unseen. */
	close(go);
	assert_int_equal(end_of(pid), 0);
	assert_int_equal(seen.images, 0);
	exec_stop_done(&held);
}

static void a_second_exec_of_a_process_waits_its_turn(void **state)
{
	struct exec_stops held;
	uint64_t before = 0;
	pid_t pid;
	int go;

	memset(&seen, 0, sizeof seen);
	exec_stop_init(&held);
	pid = start_guest(&go);
	assert_int_equal(exec_stop_begin(&held, pid, 1, &before), 0);
	/* The first one failed a moment ago, and nobody has looked yet. */
	assert_int_equal(exec_stop_begin(&held, pid, 2, &before), 1);
	assert_int_equal(before, 1);
	assert_int_equal(exec_stop_begin(&held, 0x3fffff, 3, &before), -ESRCH);
	close(go);
	serve(&held);
	assert_int_equal(seen.token, 2);
	assert_int_equal(end_of(pid), 0);
	exec_stop_done(&held);
}

static int execute(void *argument)
{
	char *argv[] = { program, NULL };

	execv(program, argv);
	return errno;
}

/* Waits for an exec, which a guest's kernel then keeps waiting for the answer whatever else wants to stop it. */
static uint64_t receive_exec(const struct guest *guest)
{
	struct seccomp_notif request = { 0 };

	assert_int_equal(ioctl(guest->listener_fd, SECCOMP_IOCTL_NOTIF_RECV, &request), 0);
	assert_int_equal(request.pid, guest->pid);
	return request.id;
}

/*
 * A signal that another thread took made the call begin anew while its first notification was answered: what was let go
 * then is held for the second one, and its program judged.
 */
static void who_was_let_go_is_held_again(void **state)
{
	const int calls[] = { SYS_execve };
	struct guest guest = guest_start(calls, ARRAY_SIZE(calls), execute, NULL);
	struct seccomp_notif_resp answer = { .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };
	struct exec_stops held;
	uint64_t before = 0;

	memset(&seen, 0, sizeof seen);
	seen.verdict = 1;
	exec_stop_init(&held);
	close(guest.start_fd);
	answer.id = receive_exec(&guest);
	assert_int_equal(exec_stop_begin(&held, guest.pid, 4, &before), 0);
	exec_stop_abandon(&held, guest.pid);
	/* Before Linux 5.19 the stop takes it out of its wait. */
	if (ioctl(guest.listener_fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &answer.id) < 0) {
		kill(guest.pid, SIGKILL);
		serve(&held);
		exec_stop_done(&held);
		close(guest.listener_fd);
		skip();
	}
	assert_int_equal(exec_stop_begin(&held, guest.pid, 5, &before), 1);
	assert_int_equal(before, 4);
	assert_int_equal(ioctl(guest.listener_fd, SECCOMP_IOCTL_NOTIF_SEND, &answer), 0);
	exec_stop_continued(&held, guest.pid);
	serve(&held);
	assert_int_equal(seen.images, 1);
	assert_int_equal(seen.token, 5);
	/* Killed before its first instruction. */
	assert_int_equal(kill(guest.pid, 0), -1);
	exec_stop_done(&held);
	close(guest.listener_fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_is_held_and_let_go),
		cmocka_unit_test(what_is_refused_does_not_run),
		cmocka_unit_test(an_exec_that_takes_too_long_is_killed),
		cmocka_unit_test(who_was_not_meant_is_let_go),
		cmocka_unit_test(a_second_exec_of_a_process_waits_its_turn),
		cmocka_unit_test(who_was_let_go_is_held_again),
	};
	int failed;

	copy_program();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(program);
	return failed;
}
