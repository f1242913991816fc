/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation. Two steps of a start do nothing but wait for the kernel: an empty network namespace (0.4 ms, the
 * dearest of all) and the farewell to the old root (0.15 ms, a grace period of RCU). Nothing else of the start needs
 * their result, so the sandbox's second process, a child of the first, takes them: it makes the network namespace
 * and all in it, hands it over as a descriptor, and, when the first has entered the new root, detaches the old one,
 * while the first executes init. Until then both are as trusted as the parent. Init waits for the second to end
 * well before it takes any command; should one of the two die, the other hears the end of their socket.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "jail/job.h"
#include "os/beside.h"
#include "os/fd.h"
#include "os/mount.h"

/* Sends the namespace, or the error. */
static int hand_over_network(struct jail_job *job, int socket)
{
	cleanup_fd int network = FD_NONE;
	struct err err;
	ssize_t size;
	int r = child_network(job, &err);

	/* It is the first's alone from now on: the parent waits for its end of file. */
	close_fd(&job->child_socket);
	if (r == 0 && job->report->second.namespaces & CLONE_NEWNET) {
		network = fd_open_at(AT_FDCWD, "/proc/self/ns/net", O_RDONLY, 0);
		if (network < 0)
			r = err_set(&err, ERR_WALL, -network, wall_names[WALL_NETNS],
				    "cannot open the network namespace in /proc: %s", err_errno_name(-network));
	}
	size = r < 0 ? fd_send_message(socket, &err, sizeof err, NULL, 0) :
		       fd_send_message(socket, "n", 1, &network, network >= 0);
	return r < 0 ? r : size < 0 ? (int)size : 0;
}

/* What the second has of its own: it outlives the first's stack. */
static struct second {
	struct jail_job job;
	int own_socket, other_socket;
} second;

/* Its exit status is what init asks for. */
static int second_run(void *argument)
{
	struct second *own = argument;
	char byte;

	close(own->other_socket);
	if (hand_over_network(&own->job, own->own_socket) < 0 || recv(own->own_socket, &byte, 1, 0) != 1)
		return 1;
	return mount_detach_old_root() < 0 ? 1 : 0;
}

int second_start(struct jail_job *job, struct err *err)
{
	const struct beside_work work = { second_run, &second };
	int sockets[2], pidfd = FD_NONE;
	pid_t pid;

	/* Whoever started atoll may ignore it; then nobody could ask how the second ended. */
	signal(SIGCHLD, SIG_DFL);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		return err_set(err, ERR_INTERNAL, errno, "jail", "cannot make a channel to the second process: %s",
			       err_errno_name(errno));
	second = (struct second){ .job = *job, .own_socket = sockets[1], .other_socket = sockets[0] };
	second.job.spec = &second.job.planned;
	pid = beside_start(BESIDE_SECOND, 0, -1, &work, &pidfd);
	close(sockets[1]);
	if (pid < 0) {
		close(sockets[0]);
		return err_set(err, ERR_INTERNAL, -pid, "jail", "cannot start the sandbox's second process: %s",
			       err_errno_name(-pid));
	}
	close(pidfd); /* init reaps it */
	job->second_socket = sockets[0];
	return 0;
}

int second_join_network(struct jail_job *job, struct err *err)
{
	struct jail_report *report = job->report;
	cleanup_fd int network = FD_NONE;
	struct err told;
	size_t count = 0;
	ssize_t size = fd_receive_message(job->second_socket, &told, sizeof told, &network, 1, &count);

	if (size == sizeof told && !count)
		return told_error(&told, err);
	if (size != 1)
		return err_set(err, ERR_INTERNAL, size < 0 ? (int)-size : ECHILD, "jail",
			       "the sandbox's second process died while the jail was built");
	report->missing |= report->second.missing;
	report->namespaces |= report->second.namespaces;
	if (count && setns(network, CLONE_NEWNET) < 0)
		return err_set(err, ERR_WALL, errno, wall_names[WALL_NETNS], "cannot enter the network namespace: %s",
			       err_errno_name(errno));
	return 0;
}

/* Not before it has handed over the namespace: a message that it leaves unread would hide its error (ECONNRESET). */
int second_release_root(const struct jail_job *job, struct err *err)
{
	if (send(job->second_socket, "r", 1, MSG_NOSIGNAL) == 1)
		return 0;
	return err_set(err, ERR_INTERNAL, errno, "jail", "the sandbox's second process has gone: %s",
		       err_errno_name(errno));
}
