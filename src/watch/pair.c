/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/pair.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/fd.h"
#include "os/identity.h"
#include "os/proc.h"

enum { TYPE_MASK = 0xf, FLAGS = SOCK_NONBLOCK | SOCK_CLOEXEC };

/* 0, or what the kernel says of such arguments. */
static int check_arguments(const struct seccomp_data *data)
{
	int type = (int)data->args[1], protocol = (int)data->args[2];

	if (type & ~(TYPE_MASK | FLAGS))
		return EINVAL;
	return protocol && protocol != AF_UNIX ? EPROTONOSUPPORT : 0;
}

static int make_pair(int type, uid_t uid, gid_t gid, int ends[2])
{
	int r = identity_take(uid, gid);

	if (r == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | (type & SOCK_NONBLOCK), 0, ends) < 0)
		r = -errno;
	identity_return();
	return r;
}

/* Both ends into the caller's table, and their numbers into its memory. */
static int put_pair(const struct reply *reply, const struct seccomp_notif *request, int memory_fd, const int ends[2])
{
	bool is_cloexec = (int)request->data.args[1] & SOCK_CLOEXEC;
	int numbers[2];

	for (int i = 0; i < 2; i++) {
		numbers[i] = reply_add_fd(reply, request->id, ends[i], is_cloexec);
		if (numbers[i] < 0)
			return numbers[i];
	}
	return pwrite(memory_fd, numbers, sizeof numbers, (off_t)request->data.args[3]) == sizeof numbers ? 0 : -EFAULT;
}

int pair_serve(struct pairs *pairs, const struct reply *reply, const struct seccomp_notif *request, uid_t uid,
	       gid_t gid)
{
	const struct seccomp_data *data = &request->data;
	int type = (int)data->args[1] & TYPE_MASK, ends[2], before[2], r;
	cleanup_fd int memory = FD_NONE;
	char path[48];

	/* The kernel makes a datagram socket of SOCK_RAW. */
	if ((int)data->args[0] != AF_UNIX || (type != SOCK_DGRAM && type != SOCK_RAW))
		return 1;
	r = check_arguments(data);
	if (r > 0)
		return reply_error(reply, request->id, r);
	if (pairs->made >= PAIRS_MAX)
		return reply_error(reply, request->id, ENFILE);
	r = proc_path((pid_t)request->pid, "mem", path, sizeof path);
	if (r == 0)
		r = memory = fd_open_at(AT_FDCWD, path, O_RDWR, 0);
	/* From here on the memory is the caller's, whoever gets its number. */
	if (r < 0 || reply_is_awaited(reply, request->id) <= 0)
		return reply_error(reply, request->id, EACCES);
	if (pread(memory, before, sizeof before, (off_t)data->args[3]) != sizeof before)
		return reply_error(reply, request->id, EFAULT);
	r = make_pair((int)data->args[1], uid, gid, ends);
	if (r < 0)
		return reply_error(reply, request->id, -r);
	pairs->made++;
	r = put_pair(reply, request, memory, ends);
	close(ends[0]);
	close(ends[1]);
	return r < 0 ? reply_error(reply, request->id, -r) : reply_value(reply, request->id, 0);
}
