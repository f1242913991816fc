/* SPDX-License-Identifier: Apache-2.0 */
#include "os/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* ioprio_set(2), which has no header. */
enum { IOPRIO_WHO_PROCESS = 1, IOPRIO_IDLE = 3 << 13 };

static int put_fds(posix_spawn_file_actions_t *actions, const struct spawn *spawn)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < spawn->fd_count; i++)
		r = spawn->fds[i].from == SPAWN_NULL
			    ? posix_spawn_file_actions_addopen(actions, spawn->fds[i].to, "/dev/null",
							       spawn->fds[i].to ? O_WRONLY : O_RDONLY, 0)
			    : posix_spawn_file_actions_adddup2(actions, spawn->fds[i].from, spawn->fds[i].to);
	return r;
}

static int put_signals(posix_spawnattr_t *attributes, const struct spawn *spawn)
{
	sigset_t none, defaults;
	int r;

	sigemptyset(&none);
	sigemptyset(&defaults);
	for (int signal = 1; signal < 64; signal++)
		if (spawn->default_signals & UINT64_C(1) << signal)
			sigaddset(&defaults, signal);
	r = posix_spawnattr_setsigmask(attributes, &none);
	if (r == 0)
		r = posix_spawnattr_setsigdefault(attributes, &defaults);
	return r != 0 ? r
		      : posix_spawnattr_setflags(attributes,
						 (spawn->unblocks_signals ? POSIX_SPAWN_SETSIGMASK : 0) |
							 (spawn->default_signals ? POSIX_SPAWN_SETSIGDEF : 0));
}

int spawn_start(const struct spawn *spawn, pid_t *ret_pid)
{
	char **env = spawn->env ? (char **)spawn->env : environ;
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int r = posix_spawn_file_actions_init(&actions);

	if (r != 0)
		return -r;
	r = posix_spawnattr_init(&attributes);
	if (r != 0)
		goto out;
	r = put_fds(&actions, spawn);
	if (r == 0)
		r = put_signals(&attributes, spawn);
	if (r == 0)
		r = (spawn->searches_path ? posix_spawnp : posix_spawn)(ret_pid, spawn->program, &actions, &attributes,
									(char **)spawn->argv, env);
	posix_spawnattr_destroy(&attributes);
out:
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

int spawn_wait(pid_t pid, int *ret_signal)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (ret_signal)
		*ret_signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- in the background ---- */

/* In the child's child, which has a copy of everything. Low descriptors first: what is handed on stands above them. */
static void become(const struct spawn *spawn, int null_fd, unsigned cpu_max_s)
{
	setsid();
	setpriority(PRIO_PROCESS, 0, 19);
	syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_IDLE);
	if (cpu_max_s && setrlimit(RLIMIT_CPU, &(struct rlimit){ cpu_max_s, cpu_max_s }) < 0)
		_exit(125);
	for (int fd = 0; fd < 3; fd++) {
		int from = null_fd;

		for (size_t i = 0; i < spawn->fd_count; i++)
			if (spawn->fds[i].to == fd && spawn->fds[i].from != SPAWN_NULL)
				from = spawn->fds[i].from;
		if (dup2(from, fd) < 0)
			_exit(125);
	}
	/* Whoever waits for the end of an output does not wait for this. */
	syscall(SYS_close_range, 3u, ~0u, 0u);
	if (chdir("/") == 0)
		execve(spawn->program, (char **)spawn->argv, spawn->env ? (char **)spawn->env : environ);
	_exit(125);
}

int spawn_background(const struct spawn *spawn, unsigned cpu_max_s)
{
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC), r;
	pid_t pid;

	if (null_fd < 0)
		return -errno;
	/* Twice, so that whoever waits for children of ours never sees this one. */
	pid = fork();
	if (pid == 0) {
		if (fork() == 0)
			become(spawn, null_fd, cpu_max_s);
		_exit(0);
	}
	r = pid < 0 ? -errno : spawn_wait(pid, NULL);
	close(null_fd);
	return r < 0 ? r : 0;
}
