/* SPDX-License-Identifier: Apache-2.0 */
#include "os/remote/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"

/*
 * Root that has taken the ids of an unprivileged user has kept the capability among those that it may have: this one
 * alone is taken up again, in the child. The ids stay, since the kernel compares them with the namespace's owner.
 */
static void take_up_admin(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data) < 0 || !(data[0].permitted & 1u << CAP_SYS_ADMIN))
		return;
	data[0].effective |= 1u << CAP_SYS_ADMIN;
	/* Without it setns(2) says so. */
	if (syscall(SYS_capset, &header, data) < 0)
		return;
}

/* In a child with memory of its own, as netns.c says. The fd, or -errno. */
static int open_inside(pid_t pid, int path_fd, int flags)
{
	char path[48];
	cleanup_fd int ns_fd = FD_NONE;
	int r = str_format(path, sizeof path, "/proc/%d/ns/user", (int)pid);

	if (r == 0)
		r = ns_fd = fd_open_at(AT_FDCWD, path, O_RDONLY, 0);
	if (r < 0)
		return r;
	take_up_admin();
	if (setns(ns_fd, CLONE_NEWUSER) < 0)
		return -errno;
	r = str_format(path, sizeof path, "/proc/self/fd/%d", path_fd);
	return r < 0 ? r : fd_open_at(AT_FDCWD, path, flags, 0);
}

static void open_and_send(pid_t pid, int path_fd, int flags, int to_fd)
{
	int fd = open_inside(pid, path_fd, flags), errnum = fd < 0 ? -fd : 0;

	if (fd_send_message(to_fd, &errnum, sizeof errnum, &fd, errnum ? 0 : 1) < 0)
		return; /* the other end hears that nothing came */
}

int userns_open(pid_t pid, int path_fd, int flags)
{
	int ends[2], errnum = ECHILD, fd = FD_NONE;
	size_t count = 0;
	ssize_t n;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	child = fork();
	if (child == 0) {
		open_and_send(pid, path_fd, flags, ends[1]);
		_exit(0);
	}
	close(ends[1]);
	n = child < 0 ? -errno : fd_receive_message(ends[0], &errnum, sizeof errnum, &fd, 1, &count);
	close(ends[0]);
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	if (n == (ssize_t)sizeof errnum && !errnum && count == 1)
		return fd;
	if (count)
		close(fd);
	return n < 0 ? (int)n : -(errnum ? errnum : EPROTO);
}
