/* SPDX-License-Identifier: Apache-2.0 */
#include "os/remote/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/remote/made-fds.h"

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

/* In the child. The fd, or -errno. */
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

struct wanted {
	pid_t pid;
	int path_fd, flags;
};

static int make(const void *context, int *fds, size_t *ret_count)
{
	const struct wanted *wanted = context;
	int fd = open_inside(wanted->pid, wanted->path_fd, wanted->flags);

	fds[0] = fd;
	*ret_count = fd >= 0;
	return fd < 0 ? -fd : 0;
}

int userns_open(pid_t pid, int path_fd, int flags)
{
	const struct wanted wanted = { pid, path_fd, flags };
	int fds[FD_PASS_MAX], r = made_fds(make, &wanted, fds);

	return r < 0 ? r : r == 1 ? fds[0] : -EPROTO;
}
