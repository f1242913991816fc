/* SPDX-License-Identifier: Apache-2.0 */
#include "client/api/spawn.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/str.h"
#include "client/api/fault.h"
#include "os/fd.h"
#include "wire/link.h"

/*
 * Theory of operation. A child of a library disturbs its host: waitpid(-1) gets it, and SIGCHLD comes. A process whose
 * exit signal is 0 does neither (but to __WALL and __WCLONE); execve(2) makes the exit signal SIGCHLD again. So there
 * are two: a helper with exit signal 0, which never executes anything, and its child, which does, while the helper
 * ends; the child then belongs to init or the nearest subreaper. Both share the caller's memory and stop its thread
 * until the exec (CLONE_VM | CLONE_VFORK): a host with gigabytes pays for no copy, and what failed is simply written
 * down. They run with all signals blocked, on stacks of their own, and make system calls alone.
 */

enum { STACK_SIZE = 64 << 10, SIGNAL_MAX = 64 };

struct spawn {
	const char *program;
	char *argv[3];
	char *envp[1];
	int fds[LINK_FIRST_FD - LINK_START_FD + LINK_FDS_MAX]; /* in the order in which they are found */
	size_t fd_count;
	char *stacks;            /* two */
	int errnum;              /* why there is none */
	const char *step;
};

static int fail(struct spawn *spawn, const char *step)
{
	spawn->errnum = errno ? errno : EINVAL;
	spawn->step = step;
	return 127;
}

/* First out of the way of the numbers that they get. */
static int place_fds(struct spawn *spawn)
{
	int above = LINK_START_FD + (int)spawn->fd_count;

	for (size_t i = 0; i < spawn->fd_count; i++) {
		spawn->fds[i] = fcntl(spawn->fds[i], F_DUPFD, above);
		if (spawn->fds[i] < 0)
			return -1;
	}
	for (size_t i = 0; i < spawn->fd_count; i++)
		if (dup2(spawn->fds[i], LINK_START_FD + (int)i) < 0)
			return -1;
	return (int)syscall(SYS_close_range, (unsigned)above, ~0u, 0u);
}

static int place_standard(void)
{
	int null_fd = fd_open_at(AT_FDCWD, "/dev/null", O_RDWR, 0);

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
static int become_program(void *context)
{
	struct spawn *spawn = context;

	if (setsid() < 0)
		return fail(spawn, "setsid");
	if (place_fds(spawn) < 0 || place_standard() < 0)
		return fail(spawn, "descriptors");
	if (syscall(SYS_close_range, (unsigned)LINK_START_FD + (unsigned)spawn->fd_count, ~0u, 0u) < 0)
		return fail(spawn, "descriptors");
	if (chdir("/") < 0)
		return fail(spawn, "working directory");
	umask(022);
	reset_signals();
	execve(spawn->program, spawn->argv, spawn->envp);
	return fail(spawn, "execve");
}

static int help(void *context)
{
	struct spawn *spawn = context;

	if (clone(become_program, spawn->stacks + 2 * STACK_SIZE, CLONE_VM | CLONE_VFORK | SIGCHLD, spawn) < 0)
		return fail(spawn, "clone");
	return 0;
}

/* Back when the program was executed, or could not be. */
static int run_helper(struct spawn *spawn)
{
	int pidfd = -1;
	pid_t pid = clone(help, spawn->stacks + STACK_SIZE, CLONE_VM | CLONE_VFORK | CLONE_PIDFD, spawn, &pidfd);
	siginfo_t info;

	if (pid < 0)
		return fail(spawn, "clone");
	/* A caller that waits with __WALL may have been first. */
	while (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | __WALL) < 0 && errno == EINTR)
		continue;
	close(pidfd);
	return 0;
}

static void run(struct spawn *spawn)
{
	sigset_t all, before;
	int saved_errno = errno, state;

	spawn->stacks = mmap(NULL, (size_t)2 * STACK_SIZE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (spawn->stacks == MAP_FAILED) {
		(void)fail(spawn, "memory");
		return;
	}
	/* A handler must not run in a process that shares this memory: not even those that libc keeps for itself. */
	memset(&all, 0xff, sizeof all);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, SIGNAL_MAX / 8);
	state = run_helper(spawn);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, SIGNAL_MAX / 8);
	munmap(spawn->stacks, (size_t)2 * STACK_SIZE);
	errno = saved_errno;
	(void)state;
}

/* ---- requests ---- */

void spawn_request_init(struct spawn_request *request, const struct atoll_context *context, const char *name)
{
	*request = (struct spawn_request){ .name = name };
	buf_init(&request->frame, LINK_START_SIZE_MAX);
	frame_begin(&request->frame, LINK_START);
	field_put_strings(&request->frame, "places", (const char *const *)context->environment);
}

void spawn_request_done(struct spawn_request *request)
{
	buf_done(&request->frame);
}

/* Both ends close-on-exec, and not in the place of a closed 0, 1 or 2 of the caller. */
static int open_socket(int ends[2])
{
	int r = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0 ? -errno : 0;

	if (r < 0)
		return r;
	for (int i = 0; r >= 0 && i < 2; i++) {
		r = fd_move_above(ends[i], 3);
		if (r >= 0)
			ends[i] = r;
	}
	if (r >= 0)
		r = fd_set_nonblocking(ends[0], true);
	if (r < 0) {
		close_fd(&ends[0]);
		close_fd(&ends[1]);
	}
	return r < 0 ? r : 0;
}

static int set_failure(const struct spawn *spawn, struct atoll_error *error)
{
	bool is_limit = spawn->errnum == EAGAIN || spawn->errnum == EMFILE || spawn->errnum == ENOMEM;

	return fault_set(error, is_limit ? ATOLL_E_LIMIT : ATOLL_E_STATE, spawn->errnum, "start",
			 "%s cannot be started: %s: %s", spawn->program, spawn->step, err_errno_name(spawn->errnum));
}

int spawn_request_start(struct spawn_request *request, const struct atoll_context *context, int *ret_fd,
			struct atoll_error *error)
{
	struct spawn spawn = {
		.program = context->program,
		.argv = { (char *)request->name, (char *)request->id },
		.fd_count = LINK_FIRST_FD - LINK_START_FD + request->fd_count,
	};
	int ends[2] = { FD_NONE, FD_NONE }, r = frame_end(&request->frame);
	cleanup_fd int request_fd = FD_NONE;

	if (r == 0)
		r = open_socket(ends);
	if (r == 0 && request->greet)
		r = request->greet(ends[0], context);
	if (r == 0)
		request_fd = fd_memfd_sealed("atoll-start", request->frame.bytes, request->frame.size);
	if (request_fd < 0)
		r = r < 0 ? r : request_fd;
	if (r < 0) {
		close_fd(&ends[0]);
		close_fd(&ends[1]);
		return r == -ENOBUFS ? fault_set(error, ATOLL_E_LIMIT, 0, "start",
						 "the request is larger than %d bytes", LINK_START_SIZE_MAX)
				     : fault_errno(error, r, "start");
	}
	spawn.fds[0] = request_fd;
	spawn.fds[1] = ends[1];
	memcpy(spawn.fds + 2, request->fds, request->fd_count * sizeof *request->fds);
	run(&spawn);
	close_fd(&ends[1]);
	if (spawn.errnum) {
		close_fd(&ends[0]);
		return set_failure(&spawn, error);
	}
	*ret_fd = ends[0];
	return 0;
}
