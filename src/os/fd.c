/* SPDX-License-Identifier: Apache-2.0 */
#include "os/fd.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/str.h"
#include "os/clock.h"

int fd_open_at(int dir_fd, const char *path, int flags, mode_t mode)
{
	int fd;

	do
		fd = openat(dir_fd, path, flags | O_CLOEXEC | O_NOCTTY, mode);
	while (fd < 0 && errno == EINTR);
	return fd < 0 ? -errno : fd;
}

int fd_read_full(int fd, void *bytes, size_t size)
{
	char *at = bytes;

	while (size) {
		ssize_t n = read(fd, at, size);

		if (n == 0)
			return -ENODATA;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			at += n;
			size -= (size_t)n;
		}
	}
	return 0;
}

int fd_write_full(int fd, const void *bytes, size_t size)
{
	const char *at = bytes;

	while (size) {
		ssize_t n = write(fd, at, size);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			at += n;
			size -= (size_t)n;
		}
	}
	return 0;
}

/* Files in /proc and /sys tell no size: the buffer doubles until a read ends early. */
static int read_to_end(int fd, size_t max, char **ret_bytes, size_t *ret_size)
{
	size_t capacity = 4096, used = 0;
	cleanup_free char *bytes = NULL;
	struct stat st;

	if (fstat(fd, &st) == 0 && st.st_size > 0 && (size_t)st.st_size < max)
		capacity = (size_t)st.st_size + 2;
	for (;;) {
		ssize_t n;

		if (!bytes || used + 1 >= capacity) {
			size_t wanted = bytes ? capacity * 2 : capacity;
			char *grown = realloc(bytes, wanted);

			if (!grown)
				return -ENOMEM;
			bytes = grown;
			capacity = wanted;
		}
		n = read(fd, bytes + used, capacity - used - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		used += (size_t)n;
		if (used > max)
			return -EFBIG;
	}
	bytes[used] = 0;
	*ret_bytes = take_ptr(bytes);
	*ret_size = used;
	return 0;
}

int fd_read_sized(int fd, off_t size, size_t max, char **ret_bytes, size_t *ret_size)
{
	cleanup_free char *bytes = NULL;
	int r;

	if (size < 0 || (uint64_t)size > max)
		return -EFBIG;
	bytes = malloc((size_t)size + 1);
	if (!bytes)
		return -ENOMEM;
	r = fd_read_full(fd, bytes, (size_t)size);
	if (r < 0)
		return r;
	bytes[size] = 0;
	*ret_size = (size_t)size;
	*ret_bytes = take_ptr(bytes);
	return 0;
}

int fd_read_file_at(int dir_fd, const char *path, size_t max, char **ret_bytes, size_t *ret_size)
{
	cleanup_fd int fd = fd_open_at(dir_fd, path, O_RDONLY, 0);

	if (fd < 0)
		return fd;
	return read_to_end(fd, max, ret_bytes, ret_size);
}

int fd_read_regular_at(int dir_fd, const char *path, size_t max, char **ret_bytes, size_t *ret_size)
{
	cleanup_fd int fd = fd_open_at(dir_fd, path, O_RDONLY | O_NONBLOCK, 0);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -ENXIO;
	return read_to_end(fd, max, ret_bytes, ret_size);
}

int fd_write_file_at(int dir_fd, const char *path, const char *text)
{
	cleanup_fd int fd = fd_open_at(dir_fd, path, O_WRONLY, 0);
	size_t size = strlen(text);
	ssize_t n;

	if (fd < 0)
		return fd;
	/* One write: these files take a value whole or not at all. */
	do
		n = write(fd, text, size);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return (size_t)n == size ? 0 : -EIO;
}

int fd_replace_file_at(int dir_fd, const char *path, const void *bytes, size_t size, mode_t mode)
{
	char temporary[PATH_MAX], suffix[SESSION_ID_SIZE];
	cleanup_fd int fd = FD_NONE;
	int r = random_session_id(suffix);

	if (r < 0)
		return r;
	r = str_format(temporary, sizeof temporary, "%s.tmp.%s", path, suffix);
	if (r < 0)
		return r;
	fd = fd_open_at(dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
	if (fd < 0)
		return fd;
	r = fd_write_full(fd, bytes, size);
	if (r == 0 && renameat(dir_fd, temporary, dir_fd, path) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(dir_fd, temporary, 0);
	return r;
}

enum { ALL_SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };

int fd_memfd_new(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	return fd < 0 ? -errno : fd;
}

int fd_memfd_seal(int fd)
{
	return fcntl(fd, F_ADD_SEALS, ALL_SEALS) < 0 ? -errno : 0;
}

int fd_memfd_sealed(const char *name, const void *bytes, size_t size)
{
	cleanup_fd int fd = fd_memfd_new(name);
	int r = fd < 0 ? fd : fd_write_full(fd, bytes, size);

	if (r == 0)
		r = fd_memfd_seal(fd);
	return r < 0 ? r : take_fd(&fd);
}

static int set_flag(int fd, int get, int set, int flag, bool on)
{
	int flags = fcntl(fd, get);

	if (flags < 0)
		return -errno;
	if (!!(flags & flag) == on)
		return 0;
	return fcntl(fd, set, on ? flags | flag : flags & ~flag) < 0 ? -errno : 0;
}

int fd_set_nonblocking(int fd, bool on)
{
	return set_flag(fd, F_GETFL, F_SETFL, O_NONBLOCK, on);
}

int fd_set_cloexec(int fd, bool on)
{
	return set_flag(fd, F_GETFD, F_SETFD, FD_CLOEXEC, on);
}

int fd_move_above(int fd, int minimum)
{
	int moved;

	if (fd >= minimum)
		return fd;
	moved = fcntl(fd, F_DUPFD_CLOEXEC, minimum);
	if (moved < 0)
		moved = -errno;
	close(fd);
	return moved;
}

int fd_duplicate(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	return copy < 0 ? -errno : copy;
}

static int compare_fd(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

int fd_keep_only(const int *fds, size_t count)
{
	int sorted[FD_KEPT_MAX];
	unsigned next = 0;

	if (count > FD_KEPT_MAX)
		return -EINVAL;
	memcpy(sorted, fds, count * sizeof *sorted);
	qsort(sorted, count, sizeof *sorted, compare_fd);
	for (size_t i = 0; i < count; i++) {
		if ((unsigned)sorted[i] > next &&
		    syscall(SYS_close_range, next, (unsigned)sorted[i] - 1, 0) < 0)
			return -errno;
		next = (unsigned)sorted[i] + 1;
	}
	return syscall(SYS_close_range, next, ~0U, 0) < 0 ? -errno : 0;
}

int fd_secure_standard(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		int opened;

		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		/* The lowest free number is this one, since those below it are open. */
		opened = openat(AT_FDCWD, "/dev/null", fd ? O_WRONLY : O_RDONLY);
		if (opened < 0)
			return -errno;
		if (opened != fd)
			return -EBADF;
	}
	return 0;
}

bool fd_is_same_file(int a, int b)
{
	struct stat sa, sb;

	return fstat(a, &sa) == 0 && fstat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
	       sa.st_ino == sb.st_ino && sa.st_rdev == sb.st_rdev;
}

union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(FD_PASS_MAX * sizeof(int))];
};

ssize_t fd_send_message(int socket_fd, const void *bytes, size_t size, const int *fds, size_t fd_count)
{
	struct iovec iov = { .iov_base = (void *)bytes, .iov_len = size };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
	union control control;
	ssize_t n;

	if (fd_count > FD_PASS_MAX)
		return -EINVAL;
	if (fd_count) {
		memset(&control, 0, sizeof control);
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(&control.header), fds, fd_count * sizeof(int));
	}
	do
		n = sendmsg(socket_fd, &message, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static size_t take_passed_fds(struct msghdr *message, int *fds)
{
	size_t count = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		size_t n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
			if (count < FD_PASS_MAX)
				fds[count++] = fd;
			else
				close(fd);
		}
	}
	return count;
}

ssize_t fd_receive_message(int socket_fd, void *bytes, size_t size, int *fds, size_t fd_max, size_t *ret_fd_count)
{
	struct iovec iov = { .iov_base = bytes, .iov_len = size };
	union control control;
	struct msghdr message = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control,
	};
	int passed[FD_PASS_MAX];
	size_t count;
	ssize_t n;

	*ret_fd_count = 0;
	do
		n = recvmsg(socket_fd, &message, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	count = take_passed_fds(&message, passed);
	if (count > fd_max || message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		for (size_t i = 0; i < count; i++)
			close(passed[i]);
		return -EMSGSIZE;
	}
	if (count)
		memcpy(fds, passed, count * sizeof *fds);
	*ret_fd_count = count;
	return n;
}

int fd_peer_credentials(int socket_fd, uid_t *ret_uid, gid_t *ret_gid, pid_t *ret_pid)
{
	struct ucred credentials;
	socklen_t size = sizeof credentials;

	if (getsockopt(socket_fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) < 0)
		return -errno;
	*ret_uid = credentials.uid;
	*ret_gid = credentials.gid;
	*ret_pid = credentials.pid;
	return 0;
}

int fd_lock_within(int fd, int operation, unsigned patience_ms)
{
	enum { NS_PER_MS = 1000000, LOOK_NS = 5 * NS_PER_MS };
	uint64_t deadline_ns = clock_monotonic_ns() + patience_ms * (uint64_t)NS_PER_MS;

	while (flock(fd, operation | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (clock_monotonic_ns() >= deadline_ns)
			return -EBUSY;
		nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
	}
	return 0;
}
