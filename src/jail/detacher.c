/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation. The farewell to the old root does nothing but wait for the kernel (0.15 ms, a grace period of
 * RCU), and nothing else of the start needs its result. So the sandbox's second process, a child of the first, takes
 * it, while the first gives its rights up and executes init. Until then both are as trusted as the parent. Init waits
 * for the second to end well before it takes any command.
 */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "jail/job.h"
#include "os/vmfork.h"
#include "os/mount.h"

/* Its exit status is what init asks for. */
static int detacher_run(void *argument)
{
	const int *child_socket = argument;

	/* It is the first's alone: the parent waits for its end of file. */
	close(*child_socket);
	return mount_detach_old_root() < 0 ? 1 : 0;
}

int detacher_start(const struct jail_job *job, struct err *err)
{
	static int child_socket; /* it outlives the first's stack */
	const struct vmfork_work work = { detacher_run, &child_socket };
	int pidfd = FD_NONE;
	pid_t pid;

	child_socket = job->child_socket;
	/* Whoever started atoll may ignore it; then nobody could ask how the second ended. */
	signal(SIGCHLD, SIG_DFL);
	pid = vmfork_start(VMFORK_DETACHER, 0, -1, &work, &pidfd);
	if (pid < 0)
		return err_set(err, ERR_INTERNAL, -pid, "jail", "cannot start the sandbox's second process: %s",
			       err_errno_name(-pid));
	close(pidfd); /* init reaps it */
	return 0;
}
