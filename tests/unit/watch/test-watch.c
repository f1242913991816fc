/* SPDX-License-Identifier: Apache-2.0 */

/* The supervisor against real callers under a real filter: what they get, and what is recorded. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "guest.h"

static const int exec_calls[] = { SYS_execve, SYS_execveat };
static const int network_calls[] = { SYS_connect, SYS_bind, SYS_listen };
static const int refused_calls[] = { SYS_mount, SYS_keyctl, SYS_socket, SYS_seccomp, SYS_getpriority };

/* ---- exec ---- */

static int execute_true(const char *const *argv)
{
	syscall(SYS_execve, "/bin/true", argv, NULL);
	return 98;
}

static int run_true(void *argument)
{
	return execute_true((const char *[]){ "true", "one", "two words", NULL });
}

static void test_exec_is_recorded_and_goes_on(void **state)
{
	struct seen seen = { 0 };

	assert_int_equal(guest_run(exec_calls, 2, run_true, NULL, &seen), 0);
	assert_int_equal(seen.execs, 1);
	assert_string_equal(seen.exe, "/bin/true");
	assert_string_equal(seen.first, "true");
	assert_string_equal(seen.last, "two words");
	assert_int_equal(seen.argc, 3);
	assert_int_equal(seen.left_out, 0);
}

static int run_many_arguments(void *argument)
{
	const char *argv[302];

	for (int i = 0; i < 301; i++)
		argv[i] = i == 300 ? "the end" : "x";
	argv[301] = NULL;
	return execute_true(argv);
}

static void test_exec_with_many_arguments_is_cut_and_counted(void **state)
{
	struct seen seen = { 0 };

	assert_int_equal(guest_run(exec_calls, 2, run_many_arguments, NULL, &seen), 0);
	assert_int_equal(seen.argc, WATCH_ARGV_MAX);
	assert_int_equal(seen.left_out, 301 - WATCH_ARGV_MAX);
}

static int run_long_arguments(void *argument)
{
	static char text[10001];

	memset(text, 'a', 10000);
	return execute_true((const char *[]){ "true", text, text, text, text, text, NULL });
}

static void test_exec_with_long_arguments_is_cut_and_counted(void **state)
{
	struct seen seen = { 0 };

	assert_int_equal(guest_run(exec_calls, 2, run_long_arguments, NULL, &seen), 0);
	/* true, three whole ones and a piece of the fourth fill 32 KiB: of that one, too, something is left out. */
	assert_int_equal(seen.argc, 5);
	assert_int_equal(seen.left_out, 2);
}

static int run_bad_pointers(void *argument)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	/* A string that runs into nothing, no pointer at all, and a vector that is none. */
	munmap(page + 4096, 4096);
	memset(page, '/', 4096);
	if (syscall(SYS_execve, page + 4000, NULL, NULL) != -1 || errno != EFAULT)
		return 1;
	if (syscall(SYS_execve, (char *)8, NULL, NULL) != -1 || errno != EFAULT)
		return 2;
	if (syscall(SYS_execve, "/bin/true", (char **)-8L, NULL) != -1 || errno != EFAULT)
		return 3;
	return 0;
}

static void test_exec_from_unmapped_memory_is_recorded_and_left_to_the_kernel(void **state)
{
	struct seen seen = { 0 };

	assert_int_equal(guest_run(exec_calls, 2, run_bad_pointers, NULL, &seen), 0);
	assert_int_equal(seen.execs, 3);
	assert_string_equal(seen.exe, "/bin/true");
	assert_int_equal(seen.argc, 0);
}

static int run_by_fd(void *argument)
{
	int fd = memfd_create("payload", MFD_CLOEXEC), from = open("/bin/true", O_RDONLY);
	char bytes[65536];
	ssize_t n;

	while ((n = read(from, bytes, sizeof bytes)) > 0)
		if (write(fd, bytes, (size_t)n) != n)
			return 97;
	syscall(SYS_execveat, fd, "", (const char *[]){ "true", NULL }, NULL, AT_EMPTY_PATH);
	return 98;
}

static void test_fexecve_of_a_memfd_is_named(void **state)
{
	struct seen seen = { 0 };

	assert_int_equal(guest_run(exec_calls, 2, run_by_fd, NULL, &seen), 0);
	assert_string_equal(seen.exe, "/memfd:payload (deleted)");
	assert_string_equal(seen.first, "true");
}

static int run_hidden(void *argument)
{
	prctl(PR_SET_DUMPABLE, 0);
	return run_true(NULL);
}

/* In a process of its own, which gives up root: nobody may read a process that is not dumpable. */
static int supervise_hidden(void)
{
	struct seen seen = { 0 };

	if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
		return 1;
	if (guest_run(exec_calls, 2, run_hidden, NULL, &seen) != 0)
		return 2;
	return seen.execs == 1 && !seen.exe[0] && !seen.argc ? 0 : 3;
}

static void test_exec_of_an_unreadable_process_is_still_recorded(void **state)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(supervise_hidden());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int run_refused_exec(void *argument)
{
	execute_true((const char *[]){ "true", NULL });
	return errno == EPERM ? 0 : 98;
}

static void test_exec_that_cannot_be_recorded_does_not_happen(void **state)
{
	struct seen seen = { .fail_with = -ENOSPC };
	struct guest guest = guest_start(exec_calls, 2, run_refused_exec, NULL);
	int served, status = guest_supervise(&guest, true, &seen, &served);

	assert_int_equal(served, -ENOSPC);
	assert_int_equal(status, 0);
}

static void test_caller_killed_while_it_waits_for_the_answer(void **state)
{
	struct guest guest = guest_start(exec_calls, 2, run_true, NULL);
	struct seen seen = { .kill_pid = guest.pid };
	int served, status = guest_supervise(&guest, true, &seen, &served);

	assert_int_equal(seen.execs, 1);
	assert_int_equal(served, 0);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void test_caller_killed_before_it_is_served(void **state)
{
	struct watch_handlers handlers = seen_handlers;
	struct watch_options options = { .network_is_empty = true };
	struct guest guest = guest_start(exec_calls, 2, run_true, NULL);
	struct pollfd polled = { .fd = guest.listener_fd, .events = POLLIN };
	struct seen seen = { 0 };
	struct watch *watch;

	handlers.context = &seen;
	assert_int_equal(watch_new(&watch, guest.listener_fd, &options, &handlers, NULL), 0);
	assert_int_equal(watch_serve(watch, 4), 0);
	close(guest.start_fd);
	assert_int_equal(poll(&polled, 1, 10000), 1);
	kill(guest.pid, SIGKILL);
	waitpid(guest.pid, NULL, 0);
	alarm(10);
	assert_int_equal(watch_serve(watch, 4), 1);
	alarm(0);
	assert_int_equal(seen.execs, 0);
	watch_free(watch);
}

/* ---- refused calls ---- */

static int run_refusals(void *argument)
{
	struct { long result; int errnum; } got[] = {
		{ syscall(SYS_mount, "none", "/mnt", "tmpfs", 0, NULL), errno },
		{ syscall(SYS_keyctl, 0, 0, 0, 0, 0), errno },
		{ syscall(SYS_socket, AF_PACKET, SOCK_RAW, 0), errno },
		{ syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 8, NULL), errno },
		/* notified, but in no table */
		{ syscall(SYS_getpriority, 0, 0), errno },
	};
	static const int wanted[] = { EPERM, EPERM, EAFNOSUPPORT, EBUSY, EPERM };

	for (int i = 0; i < 5; i++)
		if (got[i].result != -1 || got[i].errnum != wanted[i])
			return i + 1;
	return 0;
}

static void test_refused_calls_get_their_errno_and_are_recorded(void **state)
{
	struct seen seen = { 0 };

	assert_int_equal(guest_run(refused_calls, 5, run_refusals, NULL, &seen), 0);
	assert_int_equal(seen.refusals, 5);
	assert_string_equal(seen.syscall, "unknown");
}

static int run_socket(void *argument)
{
	return socket(AF_PACKET, SOCK_RAW, 0) < 0 ? errno : 0;
}

static void test_refusal_names_call_arguments_and_errno(void **state)
{
	struct seen seen = { 0 };

	assert_int_equal(guest_run(refused_calls, 5, run_socket, NULL, &seen), EAFNOSUPPORT);
	assert_string_equal(seen.syscall, "socket");
	assert_int_equal(seen.argument, AF_PACKET);
	assert_int_equal(seen.errnum, EAFNOSUPPORT);
}

enum { FLOOD_PROCESSES = 6, FLOOD_CALLS = 1000 };

static int run_flood(void *argument)
{
	int status, failed = 0;

	for (int i = 0; i < FLOOD_PROCESSES; i++) {
		if (fork() > 0)
			continue;
		for (int n = 0; n < FLOOD_CALLS; n++)
			if (syscall(SYS_mount, NULL, NULL, NULL, 0, NULL) != -1 || errno != EPERM)
				_exit(1);
		_exit(0);
	}
	for (int i = 0; i < FLOOD_PROCESSES; i++)
		failed |= wait(&status) < 0 || status;
	return failed;
}

static void test_flood_of_refused_calls_is_answered_one_by_one(void **state)
{
	struct seen seen = { 0 };

	assert_int_equal(guest_run(refused_calls, 5, run_flood, NULL, &seen), 0);
	assert_int_equal(seen.refusals, FLOOD_PROCESSES * FLOOD_CALLS);
}

/* ---- network ---- */

struct attempt {
	const char *address;
	bool is_bind;
	int type;
};

static socklen_t fill_address(const char *text, struct sockaddr_storage *out)
{
	struct sockaddr_in *inet = (void *)out;
	struct sockaddr_in6 *inet6 = (void *)out;

	memset(out, 0, sizeof *out);
	if (inet_pton(AF_INET, text, &inet->sin_addr) == 1) {
		inet->sin_family = AF_INET;
		inet->sin_port = htons(9);
		return sizeof *inet;
	}
	inet_pton(AF_INET6, text, &inet6->sin6_addr);
	inet6->sin6_family = AF_INET6;
	inet6->sin6_port = htons(9);
	return sizeof *inet6;
}

/* Datagram sockets: connect sends nothing. */
static int run_attempt(void *argument)
{
	const struct attempt *attempt = argument;
	struct sockaddr_storage address;
	socklen_t size = fill_address(attempt->address, &address);
	int fd = socket(address.ss_family, attempt->type ? attempt->type : SOCK_DGRAM, 0);

	if (fd < 0)
		return 97;
	if (attempt->is_bind)
		return bind(fd, (void *)&address, size) < 0 ? errno : 0;
	return connect(fd, (void *)&address, size) < 0 ? errno : 0;
}

static int try_connect(const char *address, bool network_is_empty, struct seen *seen)
{
	struct attempt attempt = { .address = address };
	struct guest guest = guest_start(network_calls, 3, run_attempt, &attempt);
	int served, status;

	*seen = (struct seen){ 0 };
	status = guest_supervise(&guest, network_is_empty, seen, &served);
	assert_int_equal(served, 0);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_connect_beyond_loopback_is_refused_in_the_empty_network(void **state)
{
	static const char *const outside[] = {
		"198.51.100.7", "255.255.255.255", "224.0.0.1", "169.254.169.254", "2001:db8::1",
		"::ffff:198.51.100.7", "fe80::1", "64:ff9b::7f00:1",
	};
	struct seen seen;

	for (size_t i = 0; i < ARRAY_SIZE(outside); i++) {
		assert_int_equal(try_connect(outside[i], true, &seen), ENETUNREACH);
		assert_int_equal(seen.networks, 1);
		assert_true(seen.network.is_refused);
		assert_int_equal(seen.network.errnum, ENETUNREACH);
		assert_string_equal(seen.network.operation, "connect");
		assert_string_equal(seen.network.family, strchr(outside[i], ':') ? "inet6" : "inet");
		assert_string_equal(seen.network.address, outside[i]);
		assert_int_equal(seen.network.port, 9);
	}
}

static void test_connect_to_loopback_goes_on(void **state)
{
	static const char *const inside[] = { "127.0.0.1", "127.1.2.3", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1" };
	struct seen seen;

	for (size_t i = 0; i < ARRAY_SIZE(inside); i++) {
		int result = try_connect(inside[i], true, &seen);

		/* A machine without IPv6 has no ::1; the answer must only not be ours. */
		assert_true(result == 0 || (strchr(inside[i], ':') && (result == EADDRNOTAVAIL || result == 97)));
		assert_int_equal(seen.networks, result != 97);
		assert_false(seen.network.is_refused);
	}
}

static void test_connect_in_a_shared_network_is_only_recorded(void **state)
{
	struct seen seen;

	try_connect("198.51.100.7", false, &seen);
	assert_int_equal(seen.networks, 1);
	assert_false(seen.network.is_refused);
}

static int run_unix_and_odd(void *argument)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "/nowhere/at/all" };
	int unix_fd = socket(AF_UNIX, SOCK_STREAM, 0), inet_fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr other = { .sa_family = AF_UNSPEC };

	if (connect(unix_fd, (void *)&address, sizeof address) == 0 || errno != ENOENT)
		return 1;
	if (connect(inet_fd, &other, sizeof other) != 0)
		return 2;
	if (syscall(SYS_connect, inet_fd, (void *)8, 16) == 0 || errno != EFAULT)
		return 3;
	if (syscall(SYS_connect, inet_fd, &other, -1) == 0 || errno != EINVAL)
		return 4;
	if (syscall(SYS_connect, inet_fd, &other, 1) == 0 || errno != EINVAL)
		return 5;
	if (connect(999, &other, sizeof other) == 0 || errno != EBADF)
		return 6;
	return 0;
}

static void test_unix_and_malformed_addresses_are_left_to_the_kernel(void **state)
{
	struct seen seen = { 0 };

	assert_int_equal(guest_run(network_calls, 3, run_unix_and_odd, NULL, &seen), 0);
	assert_int_equal(seen.refusals, 0);
	assert_int_equal(seen.networks, 1); /* the address that could not be read */
	assert_string_equal(seen.network.family, "unknown");
}

static int run_strange_family(void *argument)
{
	struct sockaddr other = { .sa_family = 40 /* AF_VSOCK */ };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	return connect(fd, &other, sizeof other) < 0 ? errno : 0;
}

static void test_unexpected_family_is_refused(void **state)
{
	struct seen seen = { 0 };

	assert_int_equal(guest_run(network_calls, 3, run_strange_family, NULL, &seen), EPERM);
	assert_int_equal(seen.refusals, 1);
}

static int run_listen(void *argument)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (bind(fd, (void *)&address, sizeof address) < 0)
		return 1;
	return listen(fd, 1) < 0 ? 2 : 0;
}

static void test_bind_and_listen_are_recorded(void **state)
{
	struct seen seen = { 0 };

	assert_int_equal(guest_run(network_calls, 3, run_listen, NULL, &seen), 0);
	assert_int_equal(seen.networks, 2);
	assert_string_equal(seen.network.operation, "listen");
	assert_string_equal(seen.network.family, "inet");
	assert_string_equal(seen.network.address, "127.0.0.1");
	assert_true(seen.network.port != 0);
}

static int run_listen_on_nothing(void *argument)
{
	return listen(999, 1) < 0 && errno == EBADF ? 0 : 1;
}

static void test_listen_on_a_closed_fd_is_left_to_the_kernel(void **state)
{
	struct seen seen = { 0 };

	assert_int_equal(guest_run(network_calls, 3, run_listen_on_nothing, NULL, &seen), 0);
	assert_int_equal(seen.networks, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exec_is_recorded_and_goes_on),
		cmocka_unit_test(test_exec_with_many_arguments_is_cut_and_counted),
		cmocka_unit_test(test_exec_with_long_arguments_is_cut_and_counted),
		cmocka_unit_test(test_exec_from_unmapped_memory_is_recorded_and_left_to_the_kernel),
		cmocka_unit_test(test_fexecve_of_a_memfd_is_named),
		cmocka_unit_test(test_exec_of_an_unreadable_process_is_still_recorded),
		cmocka_unit_test(test_exec_that_cannot_be_recorded_does_not_happen),
		cmocka_unit_test(test_caller_killed_while_it_waits_for_the_answer),
		cmocka_unit_test(test_caller_killed_before_it_is_served),
		cmocka_unit_test(test_refused_calls_get_their_errno_and_are_recorded),
		cmocka_unit_test(test_refusal_names_call_arguments_and_errno),
		cmocka_unit_test(test_flood_of_refused_calls_is_answered_one_by_one),
		cmocka_unit_test(test_connect_beyond_loopback_is_refused_in_the_empty_network),
		cmocka_unit_test(test_connect_to_loopback_goes_on),
		cmocka_unit_test(test_connect_in_a_shared_network_is_only_recorded),
		cmocka_unit_test(test_unix_and_malformed_addresses_are_left_to_the_kernel),
		cmocka_unit_test(test_unexpected_family_is_refused),
		cmocka_unit_test(test_bind_and_listen_are_recorded),
		cmocka_unit_test(test_listen_on_a_closed_fd_is_left_to_the_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
