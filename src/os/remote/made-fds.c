/* SPDX-License-Identifier: Apache-2.0 */
#include "os/remote/made-fds.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void make_and_send(int (*make)(const void *context, int *fds, size_t *ret_count), const void *context, int to_fd)
{
	int fds[FD_PASS_MAX], errnum;
	size_t count = 0;

	errnum = make(context, fds, &count);
	if (fd_send_message(to_fd, &errnum, sizeof errnum, fds, errnum ? 0 : count) < 0)
		return; /* the other end hears that nothing came */
}

int made_fds(int (*make)(const void *context, int *fds, size_t *ret_count), const void *context, int fds[FD_PASS_MAX])
{
	int ends[2], errnum = ECHILD;
	size_t count = 0;
	ssize_t n;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		make_and_send(make, context, ends[1]);
		_exit(0);
	}
	close(ends[1]);
	n = pid < 0 ? -errno : fd_receive_message(ends[0], &errnum, sizeof errnum, fds, FD_PASS_MAX, &count);
	close(ends[0]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (n == (ssize_t)sizeof errnum && !errnum)
		return (int)count;
	for (size_t i = 0; i < count; i++)
		close_fd(&fds[i]);
	return n < 0 ? (int)n : -(errnum ? errnum : EPROTO);
}
