/* SPDX-License-Identifier: Apache-2.0 */
#include "os/netns.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "os/fd.h"

/*
 * In a child with memory of its own, not one of vfork(2): entering a user namespace changes credentials, and with them
 * whether the memory can be read by processes of the same user (dumpable), which would be ours as well.
 */
static int make_sockets(const struct pidref *process, int family, int *fds, size_t count)
{
	if (setns(process->fd, CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return errno;
	for (size_t i = 0; i < count; i++) {
		fds[i] = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		/* What comes in small pieces is handed on in small pieces. */
		if (fds[i] < 0 || setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int)) < 0)
			return errno;
	}
	return 0;
}

static void send_sockets(const struct pidref *process, int family, size_t count, int to_fd)
{
	int fds[FD_PASS_MAX], errnum = make_sockets(process, family, fds, count);

	if (fd_send_message(to_fd, &errnum, sizeof errnum, fds, errnum ? 0 : count) < 0)
		return; /* the other end hears that nothing came */
}

int netns_sockets(const struct pidref *process, int family, int *fds, size_t count)
{
	int ends[2], errnum = ECHILD;
	size_t fd_count = 0;
	ssize_t n;
	pid_t pid;

	if (!count || count > FD_PASS_MAX)
		return -EINVAL;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		send_sockets(process, family, count, ends[1]);
		_exit(0);
	}
	close(ends[1]);
	n = pid < 0 ? -errno : fd_receive_message(ends[0], &errnum, sizeof errnum, fds, count, &fd_count);
	close(ends[0]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (n == (ssize_t)sizeof errnum && !errnum && fd_count == count)
		return 0;
	for (size_t i = 0; i < fd_count; i++)
		close_fd(&fds[i]);
	return n < 0 ? (int)n : -(errnum ? errnum : EPROTO);
}
