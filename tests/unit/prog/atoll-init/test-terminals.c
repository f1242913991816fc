/* SPDX-License-Identifier: Apache-2.0 */

/* atoll-init and commands on a terminal: job control, sizes, hang-up, and a monitor that hostile code attacks. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "os/fd.h"
#include "os/pty.h"
#include "peer.h"

static int start(void **state)
{
	*state = peer_start();
	return 0;
}

static int stop(void **state)
{
	int status = peer_end(*state);

	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

/* The master. */
static int spawn_on_terminal(struct peer *peer, uint32_t id, const char *const *argv)
{
	struct init_spawn spawn = peer_plan(id, argv);
	struct message message;

	spawn.flags = INIT_SPAWN_TTY;
	spawn.rows = 31;
	spawn.columns = 97;
	peer_spawn_some(peer, &spawn, NULL, 0);
	message = peer_expect(peer, INIT_STARTED, id);
	assert_true(message.fd >= 0);
	return message.fd;
}

/* Reads the terminal, serving the watch, until text has come. */
static void expect_text(struct peer *peer, int master, const char *text)
{
	char seen[8192];
	size_t used = 0;

	seen[0] = 0;
	while (!strstr(seen, text)) {
		struct pollfd polled[] = {
			{ .fd = master, .events = POLLIN },
			{ .fd = watch_fd(peer->watch), .events = POLLIN },
		};

		if (poll(polled, 2, 10000) <= 0)
			fail_msg("no \"%s\" came, only: %s", text, seen);
		if (polled[1].revents)
			assert_true(watch_serve(peer->watch, 8) >= 0);
		if (polled[0].revents) {
			ssize_t n = read(master, seen + used, sizeof seen - 1 - used);

			if (n <= 0)
				fail_msg("the terminal ended before \"%s\": %s", text, seen);
			used += (size_t)n;
			seen[used] = 0;
		}
	}
}

static void type_text(int master, const char *text)
{
	assert_int_equal(fd_write_full(master, text, strlen(text)), 0);
}

static void test_terminal_is_the_commands_own(void **state)
{
	struct peer *peer = *state;
	cleanup_fd int master = spawn_on_terminal(peer, 1, (const char *[]){ "sh", "-c",
		"stty size; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo all three; echo direct >/dev/tty; "
		"ls /proc/self/fd | tr '\\n' ' '; grep SigBlk /proc/self/status; "
		"read line; echo \"got $line\"; exit 6", NULL });

	expect_text(peer, master, "31 97\r\nall three\r\ndirect\r\n0 1 2 3 SigBlk:\t0000000000000000\r\n");
	type_text(master, "hello\n");
	expect_text(peer, master, "got hello");
	assert_int_equal(peer_expect(peer, INIT_EXITED, 1).exit.code, 6);
}

static void test_size_changes_reach_the_command(void **state)
{
	struct peer *peer = *state;
	struct pty_size size;
	cleanup_fd int master = spawn_on_terminal(peer, 1, (const char *[]){ "sh", "-c",
		"trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.05; done", NULL });

	expect_text(peer, master, "ready");
	assert_int_equal(pty_set_size(master, (struct pty_size){ .rows = 50, .columns = 132 }), 0);
	expect_text(peer, master, "50 132");
	peer_expect(peer, INIT_EXITED, 1);
	assert_int_equal(pty_get_size(master, &size), 0);
	assert_int_equal(size.columns, 132);
}

static void test_interrupt_key(void **state)
{
	struct peer *peer = *state;
	cleanup_fd int master = spawn_on_terminal(peer, 1, (const char *[]){
		"sh", "-c", "echo ready; exec sleep 1000", NULL });

	expect_text(peer, master, "ready");
	type_text(master, "\x03");
	assert_int_equal(peer_expect(peer, INIT_EXITED, 1).exit.signal, SIGINT);
}

static void test_suspend_key_and_continue(void **state)
{
	struct peer *peer = *state;
	cleanup_fd int master = spawn_on_terminal(peer, 1, (const char *[]){ "sh", "-c",
		"echo ready; while read line; do echo \"got $line\"; done", NULL });

	expect_text(peer, master, "ready");
	for (int i = 0; i < 3; i++) {
		type_text(master, "\x1a");
		assert_int_equal(peer_expect(peer, INIT_STOPPED, 1).value, SIGTSTP);
		peer_send_numbers(peer, INIT_CONTINUE, (uint32_t[]){ 1 }, 1);
		type_text(master, "again\n");
		expect_text(peer, master, "got again");
	}
	type_text(master, "\x04");
	assert_int_equal(peer_expect(peer, INIT_EXITED, 1).exit.code, 0);
}

static void test_job_control_of_a_shell(void **state)
{
	struct peer *peer = *state;
	cleanup_fd int master = spawn_on_terminal(peer, 1, (const char *[]){
		"bash", "--norc", "--noprofile", "--noediting", "-i", NULL });

	expect_text(peer, master, "$ ");
	type_text(master, "sleep 1000\n");
	/* Until sleep has the terminal, the key would go to the shell. */
	while (!strstr(peer->last_exe, "sleep"))
		assert_true(watch_serve(peer->watch, 1) >= 0);
	type_text(master, "\x1a");
	expect_text(peer, master, "Stopped");
	type_text(master, "bg; jobs; kill %1; echo job''done\n");
	expect_text(peer, master, "jobdone");
	type_text(master, "exit 12\n");
	assert_int_equal(peer_expect(peer, INIT_EXITED, 1).exit.code, 12);
}

static void test_hang_up_when_the_master_closes(void **state)
{
	struct peer *peer = *state;
	int master = spawn_on_terminal(peer, 1, (const char *[]){ "sh", "-c", "echo ready; sleep 1000", NULL });

	expect_text(peer, master, "ready");
	close(master);
	assert_int_equal(peer_expect(peer, INIT_EXITED, 1).exit.signal, SIGHUP);
}

static void test_signal_from_the_box(void **state)
{
	struct peer *peer = *state;
	cleanup_fd int master = spawn_on_terminal(peer, 1, (const char *[]){
		"sh", "-c", "trap 'echo term; exit 4' TERM; echo ready; while :; do sleep 0.05; done", NULL });
	cleanup_fd int second = FD_NONE;

	expect_text(peer, master, "ready");
	peer_send_numbers(peer, INIT_SIGNAL, (uint32_t[]){ 1, SIGTERM }, 2);
	expect_text(peer, master, "term");
	assert_int_equal(peer_expect(peer, INIT_EXITED, 1).exit.code, 4);
	second = spawn_on_terminal(peer, 2, (const char *[]){ "sleep", "1000", NULL });
	peer_send_numbers(peer, INIT_SIGNAL, (uint32_t[]){ 2, SIGKILL }, 2);
	assert_int_equal(peer_expect(peer, INIT_EXITED, 2).exit.signal, SIGKILL);
}

/* The signal may overtake the monitor's word that the command runs. */
static void test_signal_right_behind_the_spawn(void **state)
{
	struct peer *peer = *state;
	struct init_spawn spawn = peer_plan(1, (const char *[]){ "sleep", "1000", NULL });
	cleanup_fd int master = FD_NONE;

	spawn.flags = INIT_SPAWN_TTY;
	peer_spawn_some(peer, &spawn, NULL, 0);
	peer_send_numbers(peer, INIT_SIGNAL, (uint32_t[]){ 1, SIGTERM }, 2);
	master = peer_expect(peer, INIT_STARTED, 1).fd;
	assert_int_equal(peer_expect(peer, INIT_EXITED, 1).exit.signal, SIGTERM);
}

static void test_what_cannot_run_is_told(void **state)
{
	struct peer *peer = *state;
	struct init_spawn spawn = peer_plan(1, (const char *[]){ "no-such-program", NULL });
	struct message message;

	spawn.flags = INIT_SPAWN_TTY;
	peer_spawn_some(peer, &spawn, NULL, 0);
	message = peer_expect(peer, INIT_FAILED, 1);
	assert_int_equal(message.failure, INIT_FAILED_EXEC);
	assert_int_equal(message.value, ENOENT);
	spawn.cwd = "/no/such/place";
	peer_spawn_some(peer, &spawn, NULL, 0);
	assert_int_equal(peer_expect(peer, INIT_FAILED, 1).failure, INIT_FAILED_CWD);
}

static void test_some_streams_on_pipes(void **state)
{
	struct peer *peer = *state;
	struct init_spawn spawn = peer_plan(1, (const char *[]){ "sh", "-c",
		"[ -t 0 ] && [ ! -t 1 ] && [ -t 2 ] && echo mixed; echo error >&2", NULL });
	cleanup_fd int master = FD_NONE, read_fd = FD_NONE;
	char output[64] = "";
	int pipes[2];

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	read_fd = pipes[0];
	spawn.flags = INIT_SPAWN_TTY | INIT_SPAWN_PIPE_OUT;
	peer_spawn_some(peer, &spawn, &pipes[1], 1);
	close(pipes[1]);
	master = peer_expect(peer, INIT_STARTED, 1).fd;
	expect_text(peer, master, "error");
	peer_expect(peer, INIT_EXITED, 1);
	assert_int_equal(read(read_fd, output, sizeof output - 1), 6);
	assert_string_equal(output, "mixed\n");
	/* Nobody else holds the pipe: not init, not the monitor. */
	assert_int_equal(read(read_fd, output, 1), 0);
}

static void test_background_command_stops_when_it_reads(void **state)
{
	struct peer *peer = *state;
	struct init_spawn spawn = peer_plan(1, (const char *[]){
		"sh", "-c", "echo ready; read line; echo \"got $line\"", NULL });
	cleanup_fd int master = FD_NONE;

	spawn.flags = INIT_SPAWN_TTY | INIT_SPAWN_BACKGROUND;
	peer_spawn_some(peer, &spawn, NULL, 0);
	master = peer_expect(peer, INIT_STARTED, 1).fd;
	expect_text(peer, master, "ready");
	assert_int_equal(peer_expect(peer, INIT_STOPPED, 1).value, SIGTTIN);
	peer_send_numbers(peer, INIT_CONTINUE, (uint32_t[]){ 1 }, 1);
	type_text(master, "now\n");
	expect_text(peer, master, "got now");
	assert_int_equal(peer_expect(peer, INIT_EXITED, 1).exit.code, 0);
}

/* The outer pid of init's only child. */
static pid_t find_monitor(const struct peer *peer)
{
	char path[64];
	cleanup_free char *children = NULL;
	size_t size;

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", peer->pid, peer->pid);
	assert_int_equal(fd_read_file_at(AT_FDCWD, path, 4096, &children, &size), 0);
	return (pid_t)strtol(children, NULL, 10);
}

static void test_killed_monitor_leaves_the_command_to_init(void **state)
{
	struct peer *peer = *state;
	cleanup_fd int master = spawn_on_terminal(peer, 1, (const char *[]){ "sh", "-c",
		"trap '' HUP; echo ready; while read line; do :; done; sleep 0.2; exit 5", NULL });

	expect_text(peer, master, "ready");
	kill(find_monitor(peer), SIGKILL);
	type_text(master, "\x04");
	assert_int_equal(peer_expect(peer, INIT_EXITED, 1).exit.code, 5);
}

static void test_stopped_monitor_goes_on(void **state)
{
	struct peer *peer = *state;
	cleanup_fd int master = spawn_on_terminal(peer, 1, (const char *[]){
		"sh", "-c", "echo ready; read line; exit 8", NULL });

	expect_text(peer, master, "ready");
	kill(find_monitor(peer), SIGSTOP);
	type_text(master, "\n");
	assert_int_equal(peer_expect(peer, INIT_EXITED, 1).exit.code, 8);
}

static void test_several_terminals(void **state)
{
	struct peer *peer = *state;
	int masters[20];
	bool is_ended[20] = { false };

	for (uint32_t i = 0; i < 20; i++)
		masters[i] = spawn_on_terminal(peer, i, (const char *[]){ "cat", NULL });
	for (uint32_t i = 0; i < 20; i++)
		type_text(masters[i], "\x04");
	for (uint32_t i = 0; i < 20; i++) {
		struct message message = peer_next(peer);

		assert_int_equal(message.type, INIT_EXITED);
		assert_int_equal(message.exit.code, 0);
		assert_false(is_ended[message.id]);
		is_ended[message.id] = true;
	}
	for (uint32_t i = 0; i < 20; i++)
		close(masters[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_terminal_is_the_commands_own, start, stop),
		cmocka_unit_test_setup_teardown(test_size_changes_reach_the_command, start, stop),
		cmocka_unit_test_setup_teardown(test_interrupt_key, start, stop),
		cmocka_unit_test_setup_teardown(test_suspend_key_and_continue, start, stop),
		cmocka_unit_test_setup_teardown(test_job_control_of_a_shell, start, stop),
		cmocka_unit_test_setup_teardown(test_hang_up_when_the_master_closes, start, stop),
		cmocka_unit_test_setup_teardown(test_signal_from_the_box, start, stop),
		cmocka_unit_test_setup_teardown(test_signal_right_behind_the_spawn, start, stop),
		cmocka_unit_test_setup_teardown(test_what_cannot_run_is_told, start, stop),
		cmocka_unit_test_setup_teardown(test_some_streams_on_pipes, start, stop),
		cmocka_unit_test_setup_teardown(test_background_command_stops_when_it_reads, start, stop),
		cmocka_unit_test_setup_teardown(test_killed_monitor_leaves_the_command_to_init, start, stop),
		cmocka_unit_test_setup_teardown(test_stopped_monitor_goes_on, start, stop),
		cmocka_unit_test_setup_teardown(test_several_terminals, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
