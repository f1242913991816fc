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
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/spawn.h"

/* What sh says at descriptor 1 to a command, with these further rows. */
static int run_sh(const char *command, struct spawn spawn, char *out, size_t size)
{
	const char *argv[] = { "sh", "-c", command, NULL };
	int ends[2], signal, status;
	size_t used = 0;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	spawn.program = spawn.searches_path ? "sh" : "/bin/sh";
	spawn.argv = argv;
	spawn.fds[spawn.fd_count++] = (struct spawn_fd){ ends[1], 1 };
	assert_int_equal(spawn_start(&spawn, &pid), 0);
	close(ends[1]);
	while (used + 1 < size && (n = read(ends[0], out + used, size - 1 - used)) > 0)
		used += (size_t)n;
	out[used] = 0;
	close(ends[0]);
	status = spawn_wait(pid, &signal);
	assert_int_equal(signal, status > 128 ? status - 128 : 0);
	return status;
}

static void statuses_and_signals_are_told_apart(void **state)
{
	char out[64];

	assert_int_equal(run_sh("exit 7", (struct spawn){ 0 }, out, sizeof out), 7);
	assert_int_equal(run_sh("kill -TERM $$", (struct spawn){ 0 }, out, sizeof out), 128 + SIGTERM);
}

static void it_has_what_it_was_given_and_no_more(void **state)
{
	const char *env[] = { "A=b", NULL };
	cleanup_fd int more = fd_open_at(AT_FDCWD, "/dev/zero", O_RDONLY, 0);
	struct spawn spawn = { .env = env, .fds = { { SPAWN_NULL, 0 }, { more, 9 } }, .fd_count = 2 };
	char out[512];

	assert_int_equal(run_sh("echo $A$HOME; readlink /proc/self/fd/0 /proc/self/fd/9", spawn, out, sizeof out), 0);
	assert_string_equal(out, "b\n/dev/null\n/dev/zero\n");
}

static void a_name_is_looked_for_where_that_was_asked(void **state)
{
	const char *argv[] = { "true", NULL };
	struct spawn spawn = { .program = "true", .argv = argv };
	char out[8];
	pid_t pid;

	assert_int_equal(run_sh("exit 3", (struct spawn){ .searches_path = true }, out, sizeof out), 3);
	assert_int_equal(spawn_start(&spawn, &pid), -ENOENT);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void signals_are_put_right_where_that_was_asked(void **state)
{
	static const char trap[] = "grep -E '^Sig(Blk|Ign)' /proc/self/status | tr -d '\\n\\t'";
	const struct spawn put_right = { .unblocks_signals = true, .default_signals = UINT64_C(1) << SIGUSR2 };
	sigset_t blocked, before;
	char inherited[128], reset[128];

	signal(SIGUSR2, SIG_IGN);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	assert_int_equal(run_sh(trap, (struct spawn){ 0 }, inherited, sizeof inherited), 0);
	assert_int_equal(run_sh(trap, put_right, reset, sizeof reset), 0);
	sigprocmask(SIG_SETMASK, &before, NULL);
	signal(SIGUSR2, SIG_DFL);
	assert_non_null(strstr(inherited, "SigBlk:0000000000000200"));
	assert_non_null(strstr(inherited, "00800"));
	assert_non_null(strstr(reset, "SigBlk:0000000000000000"));
	assert_null(strstr(reset, "00800"));
}

/* A shell's ppid is no use: whoever it was given to may be anybody. Its session and its place tell. */
static void the_background_is_nobodys_child(void **state)
{
	char path[] = "/tmp/atoll-unit-spawn-XXXXXX", text[256] = "";
	static const char command[] = "echo $(cut -d' ' -f19 /proc/$$/stat) $(pwd) $(readlink /proc/$$/fd/0) "
				      "$(ls /proc/self/fd | wc -l)";
	const char *argv[] = { "sh", "-c", command, NULL };
	struct spawn spawn = { .program = "/bin/sh", .argv = argv, .fd_count = 1 };
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	spawn.fds[0] = (struct spawn_fd){ fd, 1 };
	assert_int_equal(spawn_background(&spawn, 10), 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	for (int i = 0; i < 2000 && !strchr(text, '\n'); i++) {
		usleep(10000);
		assert_true(pread(fd, text, sizeof text - 1, 0) >= 0);
	}
	unlink(path);
	close(fd);
	assert_string_equal(text, "19 / /dev/null 4\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(statuses_and_signals_are_told_apart),
		cmocka_unit_test(it_has_what_it_was_given_and_no_more),
		cmocka_unit_test(a_name_is_looked_for_where_that_was_asked),
		cmocka_unit_test(signals_are_put_right_where_that_was_asked),
		cmocka_unit_test(the_background_is_nobodys_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
