/* SPDX-License-Identifier: Apache-2.0 */
#include "os/pidref.h"

#include <string.h>
#include <sys/syscall.h>

enum { ID_PIDFD = 3 }; /* P_PIDFD of waitid(2); musl 1.2.3 lacks the name */

int pidref_open(struct pidref *ret_ref, pid_t pid)
{
	long fd = syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0)
		return -errno;
	*ret_ref = (struct pidref){ .pid = pid, .fd = (int)fd };
	return 0;
}

void pidref_done(struct pidref *ref)
{
	close_fd(&ref->fd);
	ref->pid = 0;
}

int pidref_signal(const struct pidref *ref, int signal_number)
{
	return syscall(SYS_pidfd_send_signal, ref->fd, signal_number, NULL, 0) < 0 ? -errno : 0;
}

int pidref_wait(const struct pidref *ref, int options, siginfo_t *ret_info, struct rusage *ret_usage)
{
	long r;

	memset(ret_info, 0, sizeof *ret_info);
	do
		r = syscall(SYS_waitid, ID_PIDFD, ref->fd, ret_info, options, ret_usage);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	return ret_info->si_pid != 0;
}
