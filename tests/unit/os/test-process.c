/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <poll.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/pidref.h"
#include "os/proc.h"

static pid_t start_sleeper(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		pause();
		_exit(0);
	}
	assert_true(pid > 0);
	return pid;
}

static void a_process_by_reference(void **state)
{
	cleanup_pidref struct pidref ref = PIDREF_NONE;
	struct rusage usage;
	siginfo_t info;
	pid_t pid = start_sleeper();

	assert_int_equal(pidref_open(&ref, pid), 0);
	assert_int_equal(ref.pid, pid);
	assert_int_equal(pidref_wait(&ref, WEXITED | WNOHANG, &info, &usage), 0);
	assert_int_equal(pidref_signal(&ref, 0), 0);
	assert_int_equal(pidref_signal(&ref, SIGKILL), 0);
	assert_int_equal(poll(&(struct pollfd){ .fd = ref.fd, .events = POLLIN }, 1, 5000), 1);
	assert_int_equal(pidref_wait(&ref, WEXITED, &info, &usage), 1);
	assert_int_equal(info.si_pid, pid);
	assert_int_equal(info.si_code, CLD_KILLED);
	assert_int_equal(info.si_status, SIGKILL);
	/* Reaped: the number may belong to another by now, the reference never does. */
	assert_int_equal(pidref_signal(&ref, SIGKILL), -ESRCH);
	assert_int_equal(pidref_wait(&ref, WEXITED, &info, &usage), -ECHILD);
}

static void children_are_seen_until_they_are_reaped(void **state)
{
	cleanup_pidref struct pidref ref = PIDREF_NONE;
	siginfo_t info;
	pid_t pid;

	assert_false(proc_has_children(getpid()));
	pid = start_sleeper();
	assert_int_equal(pidref_open(&ref, pid), 0);
	assert_true(proc_has_children(getpid()));
	assert_false(proc_has_children(pid));
	assert_int_equal(pidref_signal(&ref, SIGKILL), 0);
	assert_int_equal(poll(&(struct pollfd){ .fd = ref.fd, .events = POLLIN }, 1, 5000), 1);
	assert_true(proc_has_children(getpid()));
	assert_int_equal(pidref_wait(&ref, WEXITED, &info, NULL), 1);
	assert_false(proc_has_children(getpid()));
	/* Of whom nothing can be known it is not said that he has none. */
	assert_true(proc_has_children(pid));
}

static void a_path_in_proc(void **state)
{
	char path[32];

	assert_int_equal(proc_path(4194304, "fd/17", path, sizeof path), 0);
	assert_string_equal(path, "/proc/4194304/fd/17");
	assert_int_equal(proc_path(1, "cwd", path, sizeof "/proc/1/cwd"), 0);
	assert_string_equal(path, "/proc/1/cwd");
	assert_int_equal(proc_path(1, "cwd", path, sizeof "/proc/1/cwd" - 1), -ENAMETOOLONG);
}

static void no_reference_to_nobody(void **state)
{
	struct pidref ref = PIDREF_NONE;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(pidref_open(&ref, pid), -ESRCH);
	assert_int_equal(ref.fd, FD_NONE);
	assert_int_equal(pidref_open(&ref, -1), -EINVAL);
	pidref_done(&ref);
	assert_int_equal(pidref_signal(&ref, 0), -EBADF);
}

static void times_as_text(void **state)
{
	char text[CLOCK_RFC3339_SIZE];

	clock_format_rfc3339(0, text);
	assert_string_equal(text, "1970-01-01T00:00:00.000000000Z");
	clock_format_rfc3339(1772368496123456789ULL, text);
	assert_string_equal(text, "2026-03-01T12:34:56.123456789Z");
	clock_format_rfc3339(1709164800ULL * 1000000000, text);
	assert_string_equal(text, "2024-02-29T00:00:00.000000000Z");
	clock_format_rfc3339(UINT64_MAX, text);
	assert_string_equal(text, "2554-07-21T23:34:33.709551615Z");
}

static void clocks_go_forward(void **state)
{
	uint64_t before = clock_monotonic_ns();

	assert_true(clock_realtime_ns() > 1700000000ULL * 1000000000);
	assert_true(clock_monotonic_ns() >= before);
}

static void session_ids(void **state)
{
	bool seen[256] = { false };
	size_t different = 0;

	for (int i = 0; i < 1000; i++) {
		char id[SESSION_ID_SIZE];

		assert_int_equal(random_session_id(id), 0);
		assert_int_equal(strlen(id), SESSION_ID_SIZE - 1);
		assert_int_equal(strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789"), SESSION_ID_SIZE - 1);
		for (size_t at = 0; id[at]; at++)
			seen[(unsigned char)id[at]] = true;
	}
	for (size_t i = 0; i < 256; i++)
		different += seen[i];
	assert_int_equal(different, 36);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_by_reference),
		cmocka_unit_test(children_are_seen_until_they_are_reaped),
		cmocka_unit_test(a_path_in_proc),
		cmocka_unit_test(no_reference_to_nobody),
		cmocka_unit_test(times_as_text),
		cmocka_unit_test(clocks_go_forward),
		cmocka_unit_test(session_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
