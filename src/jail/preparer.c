/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation. An empty network namespace takes the kernel 0.4 ms, more than any other step of a start, and
 * asks for nothing but a user namespace. So a process beside the parent makes these two while the parent still makes
 * control groups and plans mounts. It shares the parent's table of descriptors, so that what it opens (the network
 * gate's sockets) is the parent's. When it hears that all is prepared, it makes the sandbox's first process, which
 * thereby stands in both namespaces, as a child of the parent (CLONE_PARENT, clone(2)), and ends. Like the first
 * process it is as trusted as the parent, whose death is its own.
 */
#include <errno.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "jail/job.h"
#include "os/vmfork.h"
#include "os/caps.h"
#include "os/clock.h"
#include "os/clone.h"

/* Neither can be missing: without them there is no first process that could say what went wrong. */
static const struct {
	enum wall wall;
	uint64_t flag;
	const char *failure;
} cloned[] = {
	{ WALL_USERNS, CLONE_NEWUSER, "cannot make a user namespace" },
	{ WALL_PIDNS, CLONE_NEWPID, "cannot make a PID namespace" },
};

/* Whether the kernel makes this namespace (inside a new user namespace) at all: 0 or its -errno. */
static int probe_namespace(uint64_t flag)
{
	int pidfd = FD_NONE;
	pid_t pid = clone_process(CLONE_NEWUSER | flag, -1, &pidfd);
	struct pidref child = { .pid = pid, .fd = pidfd };
	siginfo_t info;
	int r;

	if (pid < 0)
		return pid;
	if (pid == 0)
		_exit(0);
	r = pidref_wait(&child, WEXITED, &info, NULL);
	pidref_done(&child);
	return r < 0 ? r : 0;
}

/* A clone failed as a whole: asks for each namespace alone and names the first that cannot be had. */
static int explain_clone(const struct jail_spec *spec, int clone_error, struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(cloned); i++) {
		int r = jail_wall_is_broken(spec, cloned[i].wall) ? -EPERM : probe_namespace(cloned[i].flag);

		if (r < 0)
			return jail_wall_demanded(spec, cloned[i].wall, -r, err, cloned[i].failure);
	}
	return err_set(err, ERR_WALL, -clone_error, wall_names[WALL_USERNS],
		       "cannot start the sandbox's first process: %s", err_errno_name(-clone_error));
}

static int first_run(void *argument)
{
	struct jail_job *job = argument;
	struct err told;

	if (child_run(job, &told) < 0)
		(void)!send(job->child_socket, &told, sizeof told, MSG_NOSIGNAL);
	return 1;
}

static void clone_first(struct jail *jail)
{
	const struct vmfork_work work = { first_run, &jail->first };
	struct jail_prepared *prepared = &jail->job.report->prepared;
	pid_t pid = jail_wall_is_broken(jail->first.spec, WALL_PIDNS) ? -EPERM :
		    vmfork_start(VMFORK_FIRST, CLONE_NEWPID | CLONE_PARENT, jail->first.spec->cgroup_fd, &work,
				 &prepared->first_fd);

	prepared->first_pid = pid;
	prepared->cloned_ns = clock_monotonic_ns();
}

/* Its exit status is not looked at: what it has done stands in the report. */
static int preparer_run(void *argument)
{
	struct jail *jail = argument;
	struct jail_prepared *prepared = &jail->job.report->prepared;

	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != jail->parent)
		return 1;
	if (child_network(&jail->own, &prepared->failure) < 0) {
		prepared->has_failed = true;
		return 1;
	}
	/* Here it costs nothing: the parent is awaited anyway. The first process inherits it, and sees to it. */
	(void)!caps_bound(0);
	if (child_await(&jail->own) < 0)
		return 1;
	clone_first(jail);
	return 0;
}

/* No signal for the parent's group, as from a terminal, is for it or for the first process: the parent hears them. */
static pid_t start_deaf(const struct vmfork_work *work, int *ret_pidfd)
{
	sigset_t all, before;
	pid_t pid;

	sigfillset(&all);
	if (sigprocmask(SIG_SETMASK, &all, &before) < 0)
		return -errno;
	pid = vmfork_start(VMFORK_PREPARER, CLONE_NEWUSER | CLONE_FILES, -1, work, ret_pidfd);
	if (sigprocmask(SIG_SETMASK, &before, NULL) < 0 && pid >= 0)
		pid = -errno;
	return pid;
}

int preparer_start(struct jail *jail, struct err *err)
{
	const struct vmfork_work work = { preparer_run, jail };
	pid_t pid;

	jail->own = jail->job;
	jail->own.spec = &jail->own.planned;
	jail->parent = getpid();
	pid = jail_wall_is_broken(jail->own.spec, WALL_USERNS) ? -EPERM : start_deaf(&work, &jail->process.fd);
	if (pid < 0)
		return explain_clone(jail->own.spec, pid, err);
	jail->process.pid = pid;
	return 0;
}

static void await_end(struct jail *jail)
{
	struct pollfd ended = { .fd = jail->process.fd, .events = POLLIN };
	siginfo_t info;

	if (!jail->process.pid)
		return;
	while (poll(&ended, 1, -1) < 0 && errno == EINTR)
		;
	/* Where SIGCHLD is ignored the kernel has reaped it. */
	(void)!pidref_wait(&jail->process, WEXITED, &info, NULL);
	pidref_done(&jail->process);
}

int preparer_failure(struct jail *jail, struct err *err)
{
	struct jail_prepared *prepared = &jail->job.report->prepared;

	return prepared->has_failed ? child_error(&prepared->failure, err) : 0;
}

int preparer_join(struct jail *jail, struct pidref *ret_first, struct err *err)
{
	struct jail_prepared *prepared = &jail->job.report->prepared;

	int r;

	await_end(jail);
	r = preparer_failure(jail, err);
	if (r < 0)
		return r;
	if (prepared->first_pid < 0)
		return explain_clone(jail->job.spec, prepared->first_pid, err);
	if (prepared->first_pid == 0)
		return err_set(err, ERR_INTERNAL, ECHILD, "jail", "the process that makes the namespaces has died");
	*ret_first = (struct pidref){ .pid = prepared->first_pid, .fd = prepared->first_fd };
	return 0;
}

void preparer_stop(struct jail *jail)
{
	if (!jail->process.pid)
		return;
	/* Not reaped yet, so its number is its own. */
	if (pidref_signal(&jail->process, SIGKILL) < 0)
		(void)!kill(jail->process.pid, SIGKILL);
	await_end(jail);
}
