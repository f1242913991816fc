/* SPDX-License-Identifier: Apache-2.0 */
/* X1: running what was written inside. Levels that forbid new binaries (--noexec) must refuse every way to it. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "numbers.h"
#include "probe.h"

#define NEED_NOEXEC() \
	do { \
		if (!targets->noexec) \
			return outcome(note, OUTCOME_NOT_APPLICABLE, "the policy allows new binaries"); \
	} while (0)

static int copy_self(const struct targets *targets, int out)
{
	cleanup_fd int in = raw_open(targets->self ? targets->self : "/proc/self/exe", O_RDONLY, 0);

	if (in < 0)
		return -1;
	while (sendfile(out, in, NULL, 1 << 20) > 0)
		;
	return fchmod(out, 0755);
}

static enum outcome run_copy(const char *path, int fd, struct note *note)
{
	static char *environment[] = { NULL };
	char name[] = "copy", list[] = "--list";
	char *argv[] = { name, list, NULL };
	int ends[2];
	pid_t pid;

	if (pipe(ends) < 0)
		return outcome(note, OUTCOME_NOT_APPLICABLE, "pipe: %s", err_errno_name(errno));
	pid = fork();
	if (pid == 0) {
		dup2(ends[1], STDOUT_FILENO);
		if (path)
			syscall(SYS_execve, path, argv, environment);
		else
			syscall(SYS_execveat, fd, "", argv, environment, 0x1000 /* AT_EMPTY_PATH */);
		_exit(errno == EACCES || errno == EPERM ? 126 : 127);
	}
	close(ends[1]);
	if (pid < 0 || wait_for(pid) != 0)
		return outcome(note, OUTCOME_HELD, "it did not run");
	return outcome(note, OUTCOME_BROKE, "it ran");
}

static enum outcome try_copy_in(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	const char *directory = attempt->text;
	char path[4096];
	cleanup_fd int fd = FD_NONE;
	enum outcome result;

	NEED_NOEXEC();
	if (!directory)
		directory = attempt->number ? getenv("HOME") : targets->scratch;
	if (!directory)
		return outcome_no_target(note, "--scratch or HOME");
	snprintf(path, sizeof path, "%s/atolltest-mynode-%d", directory, (int)getpid());
	syscall(SYS_unlinkat, AT_FDCWD, path, 0);
	fd = raw_open(path, O_WRONLY | O_CREAT, 0700);
	if (fd < 0 || copy_self(targets, fd) < 0) {
		outcome(note, OUTCOME_HELD, "the copy cannot be made: %s", err_errno_name(errno));
		syscall(SYS_unlinkat, AT_FDCWD, path, 0);
		return OUTCOME_HELD;
	}
	close_fd(&fd);
	result = run_copy(path, FD_NONE, note);
	syscall(SYS_unlinkat, AT_FDCWD, path, 0);
	return result;
}

static enum outcome try_memfd(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	char path[64];
	int fd;

	NEED_NOEXEC();
	fd = (int)syscall(SYS_memfd_create, "x", 0);
	if (fd < 0 || copy_self(targets, fd) < 0)
		return outcome(note, OUTCOME_HELD, "%s", err_errno_name(errno));
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return run_copy(attempt->number ? path : NULL, fd, note);
}

/* The dynamic loader as an interpreter: it maps what may not be executed. */
static enum outcome try_loader(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	static char *environment[] = { NULL };
	char path[4096], name[] = "ld.so", word[] = "ran";
	char *argv[] = { name, path, word, NULL };
	cleanup_fd int in = raw_open("/bin/echo", O_RDONLY, 0);
	cleanup_fd int out = FD_NONE;
	pid_t pid;

	NEED_NOEXEC();
	snprintf(path, sizeof path, "%s/myecho", targets->scratch ? targets->scratch : "/tmp");
	out = raw_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0700);
	if (in < 0 || out < 0)
		return outcome(note, OUTCOME_HELD, "the copy cannot be made: %s", err_errno_name(errno));
	while (sendfile(out, in, NULL, 1 << 20) > 0)
		;
	close_fd(&out);
	pid = fork();
	if (pid == 0) {
		dup2(raw_open("/dev/null", O_WRONLY, 0), STDOUT_FILENO);
		dup2(STDOUT_FILENO, STDERR_FILENO);
		syscall(SYS_execve, attempt->text, argv, environment);
		_exit(127);
	}
	if (wait_for(pid) == 0)
		return outcome(note, OUTCOME_BROKE, "it ran");
	return outcome(note, OUTCOME_HELD, "it did not run");
}

static enum outcome try_map_executable(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	char path[4096];
	cleanup_fd int fd = FD_NONE;
	void *code;

	NEED_NOEXEC();
	snprintf(path, sizeof path, "%s/mycode", targets->scratch ? targets->scratch : "/tmp");
	fd = raw_open(path, O_RDWR | O_CREAT, 0700);
	if (fd < 0 || ftruncate(fd, 4096) < 0)
		return outcome(note, OUTCOME_HELD, "%s", err_errno_name(errno));
	code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	return outcome_of_call(note, code == MAP_FAILED ? -1 : 0, "mapped");
}

static const struct attempt attempts[] = {
	{ "exec.scratch", "X1", "run a copy made in the project", try_copy_in, 0, { 0 }, NULL },
	{ "exec.home", "X1", "run a copy made in the home", try_copy_in, 1, { 0 }, NULL },
	{ "exec.tmp", "X1", "run a copy made in /tmp", try_copy_in, 0, { 0 }, "/tmp" },
	{ "exec.var-tmp", "X1", "run a copy made in /var/tmp", try_copy_in, 0, { 0 }, "/var/tmp" },
	{ "exec.dev-shm", "X1", "run a copy made in /dev/shm", try_copy_in, 0, { 0 }, "/dev/shm" },
	{ "exec.run", "X1", "run a copy made in /run", try_copy_in, 0, { 0 }, "/run" },
	{ "exec.memfd", "X1", "execveat of a memfd", try_memfd, 0, { 0 }, NULL },
	{ "exec.memfd-path", "X1", "run a memfd by its link in /proc", try_memfd, 1, { 0 }, NULL },
	{ "exec.loader", "X1 X3", "the dynamic loader with a copy as its argument", try_loader, 0, { 0 },
		"/lib64/ld-linux-x86-64.so.2" },
	{ "exec.map", "X1", "map an own file executable", try_map_executable, 0, { 0 }, NULL },
};

const struct attempt_group probe_exec = { attempts, ARRAY_SIZE(attempts) };
