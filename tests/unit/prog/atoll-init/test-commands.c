/* SPDX-License-Identifier: Apache-2.0 */

/* atoll-init and commands on pipes: what they start with, how they end, and what hostile ones cannot do to it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "os/fd.h"
#include "os/path.h"
#include "peer.h"

static char directory[] = "/tmp/atoll-init-test.XXXXXX";

static int start(void **state)
{
	*state = peer_start();
	return 0;
}

/* Whatever a test did, init must still be there, and end by itself when the wire closes. */
static int stop(void **state)
{
	int status = peer_end(*state);

	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

static void write_file(const char *name, mode_t mode, const char *bytes, size_t size)
{
	char path[128];

	snprintf(path, sizeof path, "%s/%s", directory, name);
	assert_int_equal(fd_replace_file_at(AT_FDCWD, path, bytes, size, mode), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static int make_files(void **state)
{
	char path[128];

	if (!mkdtemp(directory) || chmod(directory, 0755) < 0)
		return -1;
	snprintf(path, sizeof path, "%s/first", directory);
	mkdir(path, 0755);
	snprintf(path, sizeof path, "%s/first/tool", directory);
	mkdir(path, 0755);
	write_file("plain", 0644, "echo no\n", 8);
	write_file("script", 0755, "echo script $1 $2\n", 18);
	write_file("garbage", 0755, "\x01\x02\x00\x03\n", 5);
	write_file("interpreter", 0755, "#!/nowhere/at/all\n", 18);
	write_file("tool", 0755, "#!/bin/sh\necho tool\n", 20);
	return 0;
}

static int remove_files(void **state)
{
	return path_remove_tree(AT_FDCWD, directory);
}

static void test_true(void **state)
{
	struct peer *peer = *state;
	struct message started, exited;

	peer_spawn(peer, 7, (const char *[]){ "true", NULL }, -1);
	started = peer_expect(peer, INIT_STARTED, 7);
	exited = peer_expect(peer, INIT_EXITED, 7);
	assert_true(started.value > 1);
	assert_true(started.fd < 0);
	assert_int_equal(exited.exit.code, 0);
	assert_int_equal(exited.exit.signal, 0);
	assert_true(exited.exit.max_rss_bytes > 0);
	/* The search in PATH is no exec. */
	assert_int_equal(peer->execs, 1);
	assert_string_equal(peer->last_exe, "/usr/bin/true");
}

static void test_exit_code_and_signal(void **state)
{
	char output[64];
	struct init_exit result = peer_run_shell(*state, "exit 7", output, sizeof output);

	assert_int_equal(result.code, 7);
	result = peer_run_shell(*state, "kill -SEGV $$", output, sizeof output);
	assert_int_equal(result.code, -1);
	assert_int_equal(result.signal, SIGSEGV);
}

static void test_usage_is_of_the_command_and_its_children(void **state)
{
	char output[64];
	static const char script[] = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; true";
	struct init_exit result = peer_run_shell(*state, script, output, sizeof output);

	assert_int_equal(result.code, 0);
	assert_true(result.user_us + result.system_us > 3000);
}

static struct message try_spawn(struct peer *peer, const char *program, const char *path, const char *cwd)
{
	const char *env[] = { path, NULL }, *argv[] = { program, "x", "y", NULL };
	struct init_spawn spawn = peer_plan(1, argv);
	cleanup_fd int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	spawn.env = (char **)env;
	spawn.cwd = cwd;
	peer_spawn_full(peer, &spawn, (int[]){ null_fd, null_fd, null_fd });
	return peer_expect(peer, INIT_FAILED, 1);
}

static void assert_exec_fails(struct peer *peer, const char *program, const char *path, int errnum)
{
	struct message message = try_spawn(peer, program, path, directory);

	assert_int_equal(message.failure, INIT_FAILED_EXEC);
	assert_int_equal(message.value, errnum);
}

static void test_what_cannot_run_is_told_with_its_errno(void **state)
{
	char path[256];
	struct message message;

	assert_exec_fails(*state, "no-such-program", "PATH=/usr/bin:/bin", ENOENT);
	assert_exec_fails(*state, "", "PATH=/usr/bin:/bin", ENOENT);
	assert_exec_fails(*state, "./nothing", "PATH=/usr/bin", ENOENT);
	assert_exec_fails(*state, "./plain", "PATH=/usr/bin", EACCES);
	assert_exec_fails(*state, "./first", "PATH=/usr/bin", EACCES);
	assert_exec_fails(*state, "./garbage", "PATH=/usr/bin", ENOEXEC);
	assert_exec_fails(*state, "./interpreter", "PATH=/usr/bin", ENOENT);
	assert_exec_fails(*state, "./plain/below", "PATH=/usr/bin", ENOTDIR);
	snprintf(path, sizeof path, "PATH=/nowhere:%s:/usr/bin", directory);
	assert_exec_fails(*state, "plain", path, EACCES);
	message = try_spawn(*state, "true", "PATH=/usr/bin", "/no/such/place");
	assert_int_equal(message.failure, INIT_FAILED_CWD);
	assert_int_equal(message.value, ENOENT);
}

static struct init_exit run_in_directory(struct peer *peer, const char *program, const char *path, char *output,
					 size_t size)
{
	const char *env[] = { path, NULL }, *argv[] = { program, "x", "y", NULL };
	struct init_spawn spawn = peer_plan(2, argv);

	spawn.env = (char **)env;
	spawn.cwd = directory;
	return peer_run(peer, &spawn, output, size);
}

static void test_search_in_path(void **state)
{
	char output[64], path[256];

	/* A directory of that name comes first and is passed over. */
	snprintf(path, sizeof path, "PATH=/nowhere:%s/first:%s", directory, directory);
	run_in_directory(*state, "tool", path, output, sizeof output);
	assert_string_equal(output, "tool\n");
	/* Empty components are the working directory. */
	run_in_directory(*state, "tool", "PATH=/nowhere:", output, sizeof output);
	assert_string_equal(output, "tool\n");
	run_in_directory(*state, "tool", "PATH=:/nowhere", output, sizeof output);
	assert_string_equal(output, "tool\n");
	/* Without PATH the usual places. */
	run_in_directory(*state, "echo", "NOPATH=1", output, sizeof output);
	assert_string_equal(output, "x y\n");
}

static void test_script_without_interpreter_line_runs_in_the_shell(void **state)
{
	char output[64];
	struct init_exit result = run_in_directory(*state, "./script", "PATH=/usr/bin", output, sizeof output);

	assert_int_equal(result.code, 0);
	assert_string_equal(output, "script x y\n");
}

static void test_command_starts_clean(void **state)
{
	char output[8192];
	struct init_spawn spawn = peer_plan(3, (const char *[]){ "/bin/sh", "-c",
		"ls /proc/self/fd | tr '\\n' ' '; grep -E 'Sig(Blk|Ign)' /proc/self/status; umask; pwd; "
		"cut -d' ' -f5,6,7 /proc/self/stat; cat /proc/self/environ | tr '\\0' '\\n'", NULL });
	const char *env[] = { "A=1", "B=two words", NULL };
	int group, session, terminal;
	char *at;

	spawn.umask = 027;
	spawn.env = (char **)env;
	spawn.cwd = "/usr";
	peer_run(*state, &spawn, output, sizeof output);
	/* 3 is what ls reads. */
	assert_int_equal(strncmp(output, "0 1 2 3 Sig", 11), 0);
	/* SIGXFSZ: a limit of what can be written is an error, and no end. */
	if (!strstr(output, "SigIgn:\t0000000001000000\n"))
		print_error("%s\n", output);
	assert_non_null(strstr(output, "SigBlk:\t0000000000000000\n"));
	assert_non_null(strstr(output, "SigIgn:\t0000000001000000\n"));
	at = strstr(output, "\n0027\n/usr\n");
	assert_non_null(at);
	assert_int_equal(sscanf(at + 11, "%d %d %d", &group, &session, &terminal), 3);
	assert_int_equal(group, session);
	assert_int_equal(terminal, 0);
	assert_non_null(strstr(output, "A=1\nB=two words\n"));
	assert_null(strstr(output, "HOME="));
}

static void test_signal_reaches_the_whole_group(void **state)
{
	struct peer *peer = *state;
	cleanup_fd int read_fd = FD_NONE;
	int pipes[2];
	char byte;

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	read_fd = pipes[0];
	peer_spawn(peer, 4, (const char *[]){ "sh", "-c", "sleep 1000 & echo x; wait", NULL }, pipes[1]);
	close(pipes[1]);
	peer_expect(peer, INIT_STARTED, 4);
	/* An exec of sleep waits for the watch, which only peer_next serves. */
	while (peer->execs < 2)
		assert_true(watch_serve(peer->watch, 1) >= 0);
	assert_int_equal(read(read_fd, &byte, 1), 1);
	peer_send_numbers(peer, INIT_SIGNAL, (uint32_t[]){ 4, SIGTERM }, 2);
	assert_int_equal(peer_expect(peer, INIT_EXITED, 4).exit.signal, SIGTERM);
	assert_int_equal(read(read_fd, &byte, 1), 1);
	/* sleep held the pipe too: its end says that it is gone. */
	assert_int_equal(read(read_fd, &byte, 1), 0);
	/* A command that is gone is not signalled, and that is no error. */
	peer_send_numbers(peer, INIT_SIGNAL, (uint32_t[]){ 4, SIGTERM }, 2);
	peer_send_numbers(peer, INIT_CONTINUE, (uint32_t[]){ 4 }, 1);
}

static void test_orphans_are_reaped(void **state)
{
	struct peer *peer = *state;
	char path[64], output[64];
	cleanup_free char *children = NULL;
	size_t size = 1;

	peer_run_shell(peer, "for i in 1 2 3 4 5; do (setsid sh -c 'sleep 0.05' &); done", output, sizeof output);
	snprintf(path, sizeof path, "/proc/%d/task/%d/children", peer->pid, peer->pid);
	for (int i = 0; i < 100 && size; i++) {
		free(take_ptr(children));
		peer_run_shell(peer, "sleep 0.05", output, sizeof output);
		assert_int_equal(fd_read_file_at(AT_FDCWD, path, 4096, &children, &size), 0);
	}
	assert_int_equal(size, 0);
}

/* Orphans without end: init still answers, and none is left. */
static void test_fork_storm_does_not_keep_init_from_its_wire(void **state)
{
	struct peer *peer = *state;
	char output[64];

	peer_spawn(peer, 1, (const char *[]){ "sh", "-c", "while :; do (: & : & : &); done", NULL }, -1);
	peer_expect(peer, INIT_STARTED, 1);
	for (int i = 0; i < 10; i++)
		assert_int_equal(peer_run_shell(peer, "exit 2", output, sizeof output).code, 2);
	peer_send_numbers(peer, INIT_SIGNAL, (uint32_t[]){ 1, SIGKILL }, 2);
	assert_int_equal(peer_expect(peer, INIT_EXITED, 1).exit.signal, SIGKILL);
}

static void test_stop_of_a_command_on_pipes_is_not_job_control(void **state)
{
	char output[64];
	static const char script[] = "(sleep 0.2; kill -CONT $$) & kill -STOP $$; exit 3";
	struct init_exit result = peer_run_shell(*state, script, output, sizeof output);

	assert_int_equal(result.code, 3);
}

static void test_two_hundred_commands_one_after_the_other(void **state)
{
	struct peer *peer = *state;

	for (uint32_t id = 1; id <= 200; id++)
		peer_spawn(peer, id, (const char *[]){ "true", NULL }, -1);
	for (unsigned ended = 0, started = 0; ended < 200;) {
		struct message message = peer_next(peer);

		started += message.type == INIT_STARTED;
		ended += message.type == INIT_EXITED && message.exit.code == 0;
		assert_true(message.type == INIT_STARTED || message.type == INIT_EXITED);
		assert_true(started >= ended);
	}
	assert_int_equal(peer->execs, 200);
}

static void test_table_is_bounded(void **state)
{
	struct peer *peer = *state;
	unsigned killed = 0;

	for (uint32_t id = 1; id <= 256; id++) {
		peer_spawn(peer, id, (const char *[]){ "sleep", "1000", NULL }, -1);
		peer_expect(peer, INIT_STARTED, id);
	}
	peer_spawn(peer, 257, (const char *[]){ "true", NULL }, -1);
	assert_int_equal(peer_expect(peer, INIT_FAILED, 257).value, EAGAIN);
	for (uint32_t id = 1; id <= 256; id++)
		peer_send_numbers(peer, INIT_SIGNAL, (uint32_t[]){ id, SIGKILL }, 2);
	while (killed < 256)
		killed += peer_next(peer).exit.signal == SIGKILL;
	peer_spawn(peer, 258, (const char *[]){ "true", NULL }, -1);
	peer_expect(peer, INIT_STARTED, 258);
	peer_expect(peer, INIT_EXITED, 258);
}

static void test_large_argument_vector(void **state)
{
	static char text[100001], output[100100];
	struct init_spawn spawn = peer_plan(5, (const char *[]){ "echo", text, NULL });
	struct peer *peer = *state;
	cleanup_fd int file = memfd_create("output", MFD_CLOEXEC);

	memset(text, 'z', 100000);
	peer_spawn_full(peer, &spawn, (int[]){ file, file, file });
	peer_expect(peer, INIT_STARTED, 5);
	peer_expect(peer, INIT_EXITED, 5);
	assert_int_equal(pread(file, output, sizeof output, 0), 100001);
	assert_memory_equal(output, text, 100000);
}

static void test_init_cannot_be_killed_stopped_or_read_from_inside(void **state)
{
	struct peer *peer = *state;
	char script[512], output[2048];
	struct init_exit result;

	result = peer_run_shell(peer, "kill -9 1; kill -STOP 1; kill -TERM 1; kill -40 1; kill -SEGV 1; exit 0", output,
				sizeof output);
	assert_int_equal(result.code, 0);
	/* The control: what is its own can be read by these very means. */
	result = peer_run_shell(peer, "cd /proc/self && cat environ && ls fd && readlink exe root && cat maps", output,
				sizeof output);
	assert_int_equal(result.code, 0);
	/* This /proc is the one outside, so init is there under its outer pid. */
	snprintf(script, sizeof script,
		 "cd /proc/%d || exit 9; for f in environ maps mem auxv; do cat $f && exit 1; done; "
		 "ls fd && exit 2; readlink exe && exit 3; readlink root && exit 4; readlink cwd && exit 5; exit 0",
		 peer->pid);
	result = peer_run_shell(peer, script, output, sizeof output);
	assert_int_equal(result.code, 0);
	assert_non_null(strstr(output, "Permission denied"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_true, start, stop),
		cmocka_unit_test_setup_teardown(test_exit_code_and_signal, start, stop),
		cmocka_unit_test_setup_teardown(test_usage_is_of_the_command_and_its_children, start, stop),
		cmocka_unit_test_setup_teardown(test_what_cannot_run_is_told_with_its_errno, start, stop),
		cmocka_unit_test_setup_teardown(test_search_in_path, start, stop),
		cmocka_unit_test_setup_teardown(test_script_without_interpreter_line_runs_in_the_shell, start, stop),
		cmocka_unit_test_setup_teardown(test_command_starts_clean, start, stop),
		cmocka_unit_test_setup_teardown(test_signal_reaches_the_whole_group, start, stop),
		cmocka_unit_test_setup_teardown(test_orphans_are_reaped, start, stop),
		cmocka_unit_test_setup_teardown(test_fork_storm_does_not_keep_init_from_its_wire, start, stop),
		cmocka_unit_test_setup_teardown(test_stop_of_a_command_on_pipes_is_not_job_control, start, stop),
		cmocka_unit_test_setup_teardown(test_two_hundred_commands_one_after_the_other, start, stop),
		cmocka_unit_test_setup_teardown(test_table_is_bounded, start, stop),
		cmocka_unit_test_setup_teardown(test_large_argument_vector, start, stop),
		cmocka_unit_test_setup_teardown(test_init_cannot_be_killed_stopped_or_read_from_inside, start, stop),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}
