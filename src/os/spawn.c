/* SPDX-License-Identifier: Apache-2.0 */
#include "os/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
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
	if (!spawn->keeps_priority) {
		setpriority(PRIO_PROCESS, 0, 19);
		syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_IDLE);
	}
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

/* ---- beside a library's caller ---- */

/*
 * A child of a library disturbs its host: waitpid(-1) gets it, and SIGCHLD comes. A process whose exit signal is 0 does
 * neither (but to __WALL and __WCLONE); execve(2) makes the exit signal SIGCHLD again. So there are two: a helper with
 * exit signal 0, which never executes anything, and its child, which does, while the helper ends; the child then
 * belongs to init or the nearest subreaper. Both share the caller's memory and stop its thread until the exec
 * (CLONE_VM | CLONE_VFORK): a host with gigabytes pays for no copy, and what failed is simply written down. They run
 * with all signals blocked, on stacks of their own, and make system calls alone.
 */

enum { STACK_SIZE = 64 << 10, SIGNAL_MAX = 64, FIRST_FD = 3 };

struct detached {
	const struct spawn *spawn;
	int fds[SPAWN_FDS_MAX];
	char *stacks;            /* two */
	int errnum;              /* why there is none */
	const char *step;
};

static int fail(struct detached *detached, const char *step)
{
	detached->errnum = errno ? errno : EINVAL;
	detached->step = step;
	return 127;
}

/* First out of the way of the numbers that they get. */
static int place_fds(struct detached *detached)
{
	int count = (int)detached->spawn->fd_count, above = FIRST_FD + count;

	for (int i = 0; i < count; i++) {
		detached->fds[i] = fcntl(detached->spawn->fds[i].from, F_DUPFD, above);
		if (detached->fds[i] < 0)
			return -1;
	}
	for (int i = 0; i < count; i++)
		if (dup2(detached->fds[i], FIRST_FD + i) < 0)
			return -1;
	return (int)syscall(SYS_close_range, (unsigned)above, ~0u, 0u);
}

static int place_standard(void)
{
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; null_fd >= 0 && fd <= 2; fd++)
		if (dup2(null_fd, fd) < 0)
			return -1;
	return null_fd < 0 ? -1 : 0;
}

/* The handlers are the caller's functions. The table is our own: CLONE_SIGHAND is not set. */
static void reset_signals(void)
{
	struct sigaction action = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int number = 1; number <= SIGNAL_MAX; number++)
		sigaction(number, &action, NULL);
	sigemptyset(&none);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, SIGNAL_MAX / 8);
}

/* The numbers of our own fds come before /dev/null can take one: those of 0 to 2 are not among them (F_DUPFD). */
static int become_detached(void *context)
{
	struct detached *detached = context;
	const struct spawn *spawn = detached->spawn;

	if (setsid() < 0)
		return fail(detached, "setsid");
	if (place_fds(detached) < 0 || place_standard() < 0 ||
	    syscall(SYS_close_range, (unsigned)FIRST_FD + (unsigned)spawn->fd_count, ~0u, 0u) < 0)
		return fail(detached, "descriptors");
	if (chdir("/") < 0)
		return fail(detached, "working directory");
	umask(022);
	reset_signals();
	execve(spawn->program, (char **)spawn->argv, (char **)spawn->env);
	return fail(detached, "execve");
}

static int help(void *context)
{
	struct detached *detached = context;

	if (clone(become_detached, detached->stacks + 2 * STACK_SIZE, CLONE_VM | CLONE_VFORK | SIGCHLD, detached) < 0)
		return fail(detached, "clone");
	return 0;
}

/* Back when the program was executed, or could not be. */
static void run_helper(struct detached *detached)
{
	int pidfd = -1;
	pid_t pid = clone(help, detached->stacks + STACK_SIZE, CLONE_VM | CLONE_VFORK | CLONE_PIDFD, detached, &pidfd);
	siginfo_t info;

	if (pid < 0) {
		(void)fail(detached, "clone");
		return;
	}
	/* A caller that waits with __WALL may have been first. */
	while (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | __WALL) < 0 && errno == EINTR)
		continue;
	close(pidfd);
}

int spawn_detached(const struct spawn *spawn, const char **ret_step)
{
	struct detached detached = { .spawn = spawn };
	sigset_t all, before;
	int saved_errno = errno;

	detached.stacks = mmap(NULL, (size_t)2 * STACK_SIZE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (detached.stacks == MAP_FAILED) {
		(void)fail(&detached, "memory");
	} else {
		/* A handler must not run in a process that shares this memory: not even those that libc keeps for
		 * itself. */
		memset(&all, 0xff, sizeof all);
		syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, SIGNAL_MAX / 8);
		run_helper(&detached);
		syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, SIGNAL_MAX / 8);
		munmap(detached.stacks, (size_t)2 * STACK_SIZE);
	}
	errno = saved_errno;
	*ret_step = detached.step;
	return -detached.errnum;
}
