/* SPDX-License-Identifier: Apache-2.0 */
#include "os/netns.h"

#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "os/fd.h"

/*
 * In a child with memory of its own, not one of vfork(2): entering a user namespace changes credentials, and with them
 * whether the memory can be read by processes of the same user (dumpable), which would be ours as well.
 */
static void make_socket(const struct pidref *process, int family, int to_fd)
{
	int fd = setns(process->fd, CLONE_NEWUSER | CLONE_NEWNET) < 0
			 ? -1 : socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int errnum = fd < 0 ? errno : 0;

	if (fd_send_message(to_fd, &errnum, sizeof errnum, &fd, fd >= 0) < 0)
		return; /* the other end hears that nothing came */
}

int netns_socket(const struct pidref *process, int family)
{
	int ends[2], fd = FD_NONE, errnum = ECHILD;
	size_t fd_count = 0;
	ssize_t n;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		make_socket(process, family, ends[1]);
		_exit(0);
	}
	close(ends[1]);
	n = pid < 0 ? -errno : fd_receive_message(ends[0], &errnum, sizeof errnum, &fd, 1, &fd_count);
	close(ends[0]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (n == (ssize_t)sizeof errnum && !errnum && fd_count == 1)
		return fd;
	close_fd(&fd);
	return n < 0 ? (int)n : -(errnum ? errnum : EPROTO);
}
