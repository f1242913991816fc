/* SPDX-License-Identifier: Apache-2.0 */
#include "spawn.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "os/fd.h"

/*
 * The child shares the caller's memory until exec (no page tables are copied, and an error comes back
 * in the plan), on a stack of its own, because the caller's frames must be intact when it goes on. It
 * makes only async-signal-safe calls. The sandbox cannot look into it meanwhile: the memory is init's,
 * which is not dumpable.
 */

enum { CHILD_STACK_SIZE = 16 << 10 };

static const char default_path[] = "/usr/local/bin:/usr/bin:/bin";

static const char *search_path(char *const *env)
{
	for (; env && *env; env++)
		if (strncmp(*env, "PATH=", 5) == 0)
			return *env + 5;
	return default_path;
}

/* A file without #! that holds a NUL in its first line is no script: a shell would run garbage. */
static bool looks_binary(const char *program)
{
	cleanup_fd int fd = fd_open_at(AT_FDCWD, program, O_RDONLY, 0);
	char head[128];
	ssize_t size = fd < 0 ? 0 : read(fd, head, sizeof head);

	for (ssize_t i = 0; i < size && head[i] != '\n'; i++)
		if (!head[i])
			return true;
	return false;
}

/* Returns only on failure, with the errno. */
static int execute(struct spawn_plan *plan, const char *program)
{
	const struct init_spawn *spawn = plan->spawn;
	size_t count = 0;

	execve(program, spawn->argv, spawn->env);
	if (errno != ENOEXEC || looks_binary(program))
		return errno;
	/* As execvp(3) and every shell do with a script that names no interpreter. */
	plan->shell_argv[count++] = (char *)"/bin/sh";
	plan->shell_argv[count++] = (char *)program;
	for (char **argument = spawn->argv + 1; *argument; argument++)
		plan->shell_argv[count++] = *argument;
	plan->shell_argv[count] = NULL;
	execve(plan->shell_argv[0], plan->shell_argv, spawn->env);
	return errno;
}

/* An empty directory is the working directory (POSIX, PATH). */
static bool join_program(char out[PATH_MAX], const char *directory, size_t length, const char *name)
{
	size_t name_length = strlen(name);

	if (length + name_length + 2 > PATH_MAX)
		return false;
	memcpy(out, directory, length);
	if (length)
		out[length++] = '/';
	memcpy(out + length, name, name_length + 1);
	return true;
}

/* Asks before it executes: a failed execve would be a notification and a record of something that never ran. */
static int try_program(struct spawn_plan *plan)
{
	struct stat st;

	if (faccessat(AT_FDCWD, plan->program, X_OK, 0) < 0 || stat(plan->program, &st) < 0)
		return errno;
	if (!S_ISREG(st.st_mode))
		return EACCES;
	return execute(plan, plan->program);
}

static int find_and_execute(struct spawn_plan *plan)
{
	const char *name = plan->spawn->argv[0], *path = search_path(plan->spawn->env);
	int result = ENOENT;

	if (strchr(name, '/'))
		return execute(plan, name);
	if (!*name)
		return ENOENT;
	for (;;) {
		size_t length = strcspn(path, ":");
		int errnum = join_program(plan->program, path, length, name) ? try_program(plan) : ENAMETOOLONG;

		/* execvp(3): passes over what is not there or may not be run, and tells "may not" at the end. */
		if (errnum == EACCES)
			result = EACCES;
		else if (errnum != ENOENT && errnum != ENOTDIR && errnum != ENAMETOOLONG && errnum != ELOOP)
			return errnum;
		if (!path[length])
			return result;
		path += length + 1;
	}
}

static int child_prepare(struct spawn_plan *plan)
{
	if (plan->terminal >= 0) {
		/* A group of its own in the monitor's session: not orphaned, so Ctrl-Z can stop it. */
		if (setpgid(0, 0) < 0)
			return errno;
		if (!(plan->spawn->flags & INIT_SPAWN_BACKGROUND) && tcsetpgrp(plan->terminal, getpid()) < 0)
			return errno;
	} else if (setsid() < 0) {
		return errno;
	}
	for (int i = 0; i < 3; i++)
		if (dup2(plan->fds[i], i) < 0)
			return errno;
	umask(plan->spawn->umask & 0777);
	return 0;
}

static int child_main(void *argument)
{
	struct spawn_plan *plan = argument;
	sigset_t none;

	plan->failure = INIT_FAILED_SETUP;
	plan->errnum = child_prepare(plan);
	if (plan->errnum)
		_exit(127);
	plan->failure = INIT_FAILED_CWD;
	if (chdir(plan->spawn->cwd) < 0) {
		plan->errnum = errno;
		_exit(127);
	}
	plan->failure = INIT_FAILED_EXEC;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	plan->errnum = find_and_execute(plan);
	_exit(127);
}

pid_t spawn_command(struct spawn_plan *plan)
{
	static char stack[CHILD_STACK_SIZE] __attribute__((aligned(16)));
	pid_t pid;

	plan->errnum = 0;
	plan->failure = INIT_FAILED_SETUP;
	pid = clone(child_main, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, plan);
	if (pid < 0)
		return -errno;
	/* The child wrote to the plan behind the compiler's back. */
	__asm__ volatile("" ::: "memory");
	if (!plan->errnum)
		return pid;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return -plan->errnum;
}
