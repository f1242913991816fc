/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/call/reply.h"

#include <fcntl.h>
#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int send_response(const struct reply *reply, struct seccomp_notif_resp response)
{
	*reply->response = response;
	if (ioctl(reply->listener_fd, SECCOMP_IOCTL_NOTIF_SEND, reply->response) == 0 || errno == ENOENT)
		return 0;
	return -errno;
}

int reply_error(const struct reply *reply, uint64_t id, int errnum)
{
	return send_response(reply, (struct seccomp_notif_resp){ .id = id, .error = -errnum });
}

int reply_value(const struct reply *reply, uint64_t id, int64_t value)
{
	return send_response(reply, (struct seccomp_notif_resp){ .id = id, .val = value });
}

int reply_restart(const struct reply *reply, uint64_t id, pid_t pid)
{
	enum { RESTART_CALL = 512 };

	/* One to the process may be waiting for another thread. While the call waits, its number is its own. */
	if (reply->is_signalled && reply_is_awaited(reply, id) == 1 && syscall(SYS_tkill, pid, SIGSTOP) < 0 &&
	    errno != ESRCH)
		return -errno;
	return reply_error(reply, id, RESTART_CALL);
}

int reply_continue(const struct reply *reply, uint64_t id)
{
	return send_response(reply, (struct seccomp_notif_resp){ .id = id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE });
}

int reply_add_fd(const struct reply *reply, uint64_t id, int fd, bool is_cloexec)
{
	struct seccomp_notif_addfd added = {
		.id = id,
		.srcfd = (uint32_t)fd,
		.newfd_flags = is_cloexec ? O_CLOEXEC : 0,
	};
	int r;

	/*
	 * Not with SECCOMP_ADDFD_FLAG_SEND: that marks the call as answered before the caller has taken the descriptor,
	 * and where a signal of ours comes in between (a debugger, a stop) the caller is told that it got number 0.
	 */
	do
		r = ioctl(reply->listener_fd, SECCOMP_IOCTL_NOTIF_ADDFD, &added);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r;
}

int reply_fd(const struct reply *reply, uint64_t id, int fd, bool is_cloexec)
{
	int r = reply_add_fd(reply, id, fd, is_cloexec);

	if (r < 0)
		return r == -ENOENT ? 0 : reply_error(reply, id, -r);
	return reply_value(reply, id, r);
}

int reply_is_awaited(const struct reply *reply, uint64_t id)
{
	if (ioctl(reply->listener_fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0)
		return 1;
	return errno == ENOENT ? 0 : -errno;
}
