/* SPDX-License-Identifier: Apache-2.0 */

/* atoll-init and its wire: what it refuses to live with, and that its end is the end of the sandbox. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "jail/filter.h"
#include "os/fd.h"
#include "peer.h"
#include "watch/refusals.h"

static const char *const true_argv[] = { "true", NULL };

/* init says INIT_BROKEN and ends with 1. */
static void assert_breaks(struct peer *peer, int errnum, const char *wall)
{
	struct message message = peer_expect(peer, INIT_BROKEN, 0);
	int status;

	assert_int_equal(message.value, errnum);
	assert_string_equal(message.wall, wall);
	assert_int_equal(peer_next(peer).type, 0);
	status = peer_end(peer);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1);
}

static void test_wire_closed(void **state)
{
	struct peer *peer = peer_start();
	cleanup_fd int read_fd = FD_NONE;
	int pipes[2], status;
	char byte;

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	read_fd = pipes[0];
	peer_spawn(peer, 1, (const char *[]){ "sleep", "1000", NULL }, pipes[1]);
	close(pipes[1]);
	peer_expect(peer, INIT_STARTED, 1);
	status = peer_end(peer);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	/* The namespace died with it. */
	assert_int_equal(read(read_fd, &byte, 1), 0);
}

static void test_wire_closed_before_the_filter(void **state)
{
	struct peer *peer = peer_launch("strict", 0);
	int status = peer_end(peer);

	/* It saw that nobody is there, wherever it was: no exit code but no hang. */
	assert_true(WIFEXITED(status));
}

static void test_garbage(void **state)
{
	static const char garbage[] = "GET / HTTP/1.1\r\n\r\n";
	struct peer *peer = peer_start();

	peer_send_raw(peer, garbage, sizeof garbage, NULL, 0);
	assert_breaks(peer, EPROTO, "wire");
}

static void test_unknown_type(void **state)
{
	struct peer *peer = peer_start();

	peer_send_numbers(peer, INIT_EXITED, (uint32_t[]){ 1 }, 1);
	assert_breaks(peer, EPROTO, "wire");
}

static void test_truncated_spawn(void **state)
{
	struct peer *peer = peer_start();

	peer_send_numbers(peer, INIT_SPAWN, (uint32_t[]){ 1, 0, 0, 0 }, 4);
	assert_breaks(peer, EBADMSG, "wire");
}

static void send_spawn(struct peer *peer, uint32_t flags, size_t fd_count)
{
	struct init_spawn spawn = peer_plan(1, true_argv);
	cleanup_fd int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	cleanup_buf struct buf out;

	spawn.flags = flags;
	buf_init(&out, FRAME_MESSAGE_MAX);
	assert_int_equal(init_spawn_put(&out, &spawn), 0);
	peer_send_raw(peer, out.bytes, out.size, (int[]){ null_fd, null_fd, null_fd, null_fd }, fd_count);
}

static void test_wrong_number_of_fds(void **state)
{
	static const struct { uint32_t flags; size_t fd_count; } cases[] = {
		{ 0, 0 }, { 0, 2 }, { 0, 4 }, { INIT_SPAWN_TTY, 3 },
		{ INIT_SPAWN_TTY | INIT_SPAWN_PIPE_IN, 0 }, { INIT_SPAWN_PIPE_IN, 1 }, { INIT_SPAWN_PIPE_IN, 3 },
		{ INIT_SPAWN_TTY | INIT_SPAWN_PIPE_IN | INIT_SPAWN_PIPE_OUT | INIT_SPAWN_PIPE_ERR, 3 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct peer *peer = peer_start();

		send_spawn(peer, cases[i].flags, cases[i].fd_count);
		assert_breaks(peer, EPROTO, "wire");
	}
}

static void test_unknown_flag(void **state)
{
	struct peer *peer = peer_start();

	send_spawn(peer, 1u << 7, 3);
	assert_breaks(peer, EPROTO, "wire");
}

static void test_identifier_used_twice(void **state)
{
	struct peer *peer = peer_start();

	peer_spawn(peer, 1, (const char *[]){ "sleep", "1000", NULL }, -1);
	peer_expect(peer, INIT_STARTED, 1);
	peer_spawn(peer, 1, true_argv, -1);
	assert_breaks(peer, EPROTO, "wire");
}

static void test_signal_out_of_range(void **state)
{
	struct peer *peer = peer_start();

	peer_send_numbers(peer, INIT_SIGNAL, (uint32_t[]){ 1, 65 }, 2);
	assert_breaks(peer, EPROTO, "wire");
}

static void test_unknown_profile(void **state)
{
	assert_breaks(peer_launch("lenient", 0), EINVAL, "init");
}

static void test_without_no_new_privs(void **state)
{
	assert_breaks(peer_launch("strict", PEER_WITH_PRIVILEGES), EPERM, "seccomp");
}

static void test_old_root_must_be_gone(void **state)
{
	assert_breaks(peer_launch("strict", PEER_FAILED_SECOND), EPERM, "mounts");
	assert_breaks(peer_launch("strict", PEER_WITHOUT_SECOND), ECHILD, "mounts");
}

static void test_nested_profile(void **state)
{
	struct peer *peer = peer_launch("nested", 0);
	struct message message = peer_expect(peer, INIT_READY, 0);

	assert_true(message.fd >= 0);
	close(message.fd);
	peer_end(peer);
}

/* Without a supervisor every notified call fails: nothing runs unwatched. */
static void test_supervisor_gone(void **state)
{
	struct peer *peer = peer_launch("strict", 0);
	struct message message = peer_expect(peer, INIT_READY, 0);

	close(message.fd);
	peer_spawn(peer, 1, true_argv, -1);
	message = peer_expect(peer, INIT_FAILED, 1);
	assert_int_equal(message.failure, INIT_FAILED_EXEC);
	assert_int_equal(message.value, ENOSYS);
	peer_end(peer);
}

/* The supervisor answers what the filter's tables promise. */
static void test_refusals_agree_with_the_filter(void **state)
{
	unsigned compared = 0;

	for (int number = 0; number < 1024; number++) {
		const char *name = jail_filter_syscall_name(number);
		const struct watch_refused_call *call = watch_refused_call_find(number);

		if (!name)
			continue;
		compared++;
		if (!call || strcmp(call->name, name) != 0 || call->errnum != jail_filter_syscall_errno(number))
			fail_msg("%s: the filter says errno %d, the supervisor %d", name,
				 jail_filter_syscall_errno(number), call ? call->errnum : EPERM);
	}
	assert_true(compared > 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wire_closed),
		cmocka_unit_test(test_wire_closed_before_the_filter),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_unknown_type),
		cmocka_unit_test(test_truncated_spawn),
		cmocka_unit_test(test_wrong_number_of_fds),
		cmocka_unit_test(test_unknown_flag),
		cmocka_unit_test(test_identifier_used_twice),
		cmocka_unit_test(test_signal_out_of_range),
		cmocka_unit_test(test_unknown_profile),
		cmocka_unit_test(test_without_no_new_privs),
		cmocka_unit_test(test_old_root_must_be_gone),
		cmocka_unit_test(test_nested_profile),
		cmocka_unit_test(test_supervisor_gone),
		cmocka_unit_test(test_refusals_agree_with_the_filter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
