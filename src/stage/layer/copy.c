/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A source is looked at first and opened only when it is a regular file, then looked at again through the descriptor:
 * between the two the agent may have put a FIFO (on which open blocks) or a device there. After the bytes have been
 * read, size, mtime and ctime must still be those of before, else the copy is thrown away and made anew.
 */

#include "stage/layer/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/identity.h"
#include "os/path.h"
#include "stage/layer/attributes.h"

enum {
	TRIES_MAX = 3,
	/* Below this a read and a write are faster than what the kernel sets up for copy_file_range. */
	CHUNK_SIZE = 128 << 10,
	SET_ID = S_ISUID | S_ISGID,
};

static int copy_chunks(int from, int to, off_t at, off_t end)
{
	static char chunk[CHUNK_SIZE];

	while (at < end) {
		size_t wanted = end - at < CHUNK_SIZE ? (size_t)(end - at) : CHUNK_SIZE;
		ssize_t n = pread(from, chunk, wanted, at), put = 0;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		/* It became shorter; the look afterwards says so. */
		if (n == 0)
			return COPY_CHANGED;
		while (put < n) {
			ssize_t m = pwrite(to, chunk + put, (size_t)(n - put), at + put);

			if (m < 0 && errno != EINTR)
				return -errno;
			put += m > 0 ? m : 0;
		}
		at += n;
	}
	return 0;
}

/* Whether the error says that this pair of file systems cannot do it, rather than that it failed. */
static bool is_unsupported(int error)
{
	return error == EXDEV || error == EINVAL || error == ENOSYS || error == EOPNOTSUPP || error == ENOTTY ||
	       error == EBADF || error == EPERM || error == ETXTBSY;
}

static int copy_range(int from, int to, off_t at, off_t end)
{
	while (end - at > CHUNK_SIZE) {
		off_t in = at, out = at;
		ssize_t n = copy_file_range(from, &in, to, &out, (size_t)(end - at), 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && !is_unsupported(errno))
			return -errno;
		/* 0 may also be a file system that pretends (procfs and kin): read decides. */
		if (n <= 0)
			break;
		at += n;
	}
	return copy_chunks(from, to, at, end);
}

static int copy_data_parts(int from, int to, off_t size)
{
	off_t at = 0;

	while (at < size) {
		off_t data = lseek(from, at, SEEK_DATA), hole;
		int r;

		if (data < 0 && errno == ENXIO)
			break;
		if (data < 0)
			return copy_range(from, to, at, size);
		hole = lseek(from, data, SEEK_HOLE);
		if (hole < 0)
			return -errno;
		if (data >= size)
			break;
		r = copy_range(from, to, data, hole < size ? hole : size);
		if (r != 0)
			return r;
		at = hole;
	}
	return ftruncate(to, size) < 0 ? -errno : 0;
}

static int copy_bytes(int from, int to, const struct stat *st)
{
	/* Where there are no clones, asking costs as much as a small file: ask once for each file system in a row. */
	static dev_t plain_device;

	if (st->st_size == 0)
		return 0;
	if (!plain_device || plain_device != st->st_dev) {
		if (ioctl(to, FICLONE, from) == 0)
			return 0;
		if (!is_unsupported(errno))
			return -errno;
		plain_device = st->st_dev;
	}
	if (st->st_blocks * 512 >= st->st_size)
		return copy_range(from, to, 0, st->st_size);
	return copy_data_parts(from, to, st->st_size);
}

static bool is_any(const char *name)
{
	return true;
}

/*
 * What comes along, and nothing that the place where the copy was made gave to it (a default ACL). A file that takes
 * the place of another keeps that one's label, and mostly its ACL.
 */
static int copy_xattrs(const struct copy *copy, int from, int to)
{
	const int acl_fds[] = {
		[COPY_ACL_NONE] = FD_NONE, [COPY_ACL_SOURCE] = from, [COPY_ACL_REPLACED] = copy->replaced_fd,
	};
	int r;

	if (copy->kind == COPY_EXACT)
		return attributes_match(from, to, is_any);
	r = attributes_match(from, to, attributes_is_user);
	if (r == 0)
		r = attributes_match(acl_fds[copy->acl], to, attributes_is_acl);
	if (r == 0 && copy->replaced_fd >= 0)
		r = attributes_match(copy->replaced_fd, to, attributes_is_label);
	return r;
}

static mode_t kept_mode(struct copy *copy, const struct stat *st)
{
	mode_t mode = st->st_mode & 07777;

	/* To a directory these bits are a property of the project, and give nobody anything. */
	if (S_ISDIR(st->st_mode) && copy->kind == COPY_TO_HOST)
		return mode | copy->more_mode;
	if (copy->kind == COPY_EXACT || !(mode & SET_ID))
		return mode;
	copy->lost_set_id = true;
	return mode & ~(mode_t)SET_ID;
}

/* fd may be an O_PATH descriptor with its name (for links). The owner comes first: chown clears set-id bits. */
static int give_owner(const struct copy *copy, int fd, const struct stat *st)
{
	uid_t uid = copy->gives_owner ? copy->uid : st->st_uid;
	gid_t gid = copy->gives_owner || copy->gives_group ? copy->gid : st->st_gid;
	struct stat now;

	if (fstatat(fd, "", &now, AT_EMPTY_PATH) < 0)
		return -errno;
	if (now.st_uid == uid && now.st_gid == gid)
		return 0;
	if (geteuid() == 0)
		return fchownat(fd, "", uid, gid, AT_EMPTY_PATH) < 0 ? -errno : 0;
	/* A user gives files only to groups that he is in; any other group is not his to keep. */
	if (now.st_gid != gid && fchownat(fd, "", (uid_t)-1, gid, AT_EMPTY_PATH) < 0 && errno != EPERM)
		return -errno;
	return 0;
}

static int set_attributes(struct copy *copy, int from, int to, const struct stat *st)
{
	struct timespec times[2] = { st->st_atim, st->st_mtim };
	int r = give_owner(copy, to, st);

	if (r == 0)
		r = copy_xattrs(copy, from, to);
	if (r < 0)
		return r;
	if (fchmod(to, kept_mode(copy, st)) < 0 || futimens(to, times) < 0)
		return -errno;
	return 0;
}

static int describe(struct copy *copy, int fd, const struct stat *source)
{
	struct stat st;

	if (fstatat(fd, "", &st, AT_EMPTY_PATH) < 0)
		return -errno;
	identity_of_stat(&st, &copy->made);
	identity_of_stat(source, &copy->source);
	return COPY_MADE;
}

/* What is copied, opened. */
struct source {
	int fd;               /* owned */
	int lent_fd;          /* owned: where the right to read was lent, O_PATH; else FD_NONE */
	mode_t mode;          /* what it had before */
	struct stat now;      /* as it is while it is open; `seen` of the caller is what it was before */
};

/* 0, or -errno: the mode that was lent is still there. */
static int close_source(struct source *source)
{
	int r = source->lent_fd >= 0 ? path_chmod(source->lent_fd, source->mode) : 0;

	close_fd(&source->lent_fd);
	close_fd(&source->fd);
	return r;
}

/*
 * The owner may not be able to read his own file: the agent can chmod it to 0. The right to read is lent until the copy
 * is made, since attributes are read with it too.
 */
static int open_unreadable(const struct copy *copy, const struct stat *seen, struct source *source)
{
	char link[32];
	cleanup_fd int path_fd = fd_open_at(copy->from_fd, copy->from, O_PATH | O_NOFOLLOW, 0);
	struct stat st;
	int r;

	if (path_fd < 0)
		return path_fd;
	if (fstat(path_fd, &st) < 0 || st.st_ino != seen->st_ino || st.st_dev != seen->st_dev ||
	    st.st_uid != geteuid() || str_format(link, sizeof link, "/proc/self/fd/%d", path_fd) < 0)
		return -EACCES;
	r = path_chmod(path_fd, st.st_mode | S_IRUSR);
	if (r < 0)
		return r;
	source->mode = st.st_mode;
	source->lent_fd = take_fd(&path_fd);
	source->fd = fd_open_at(AT_FDCWD, link, O_RDONLY | O_NONBLOCK, 0);
	return source->fd;
}

static bool is_as_seen(const struct source *source, const struct stat *seen)
{
	const struct stat *now = &source->now;
	mode_t lent = source->lent_fd >= 0 ? S_IRUSR : 0;

	return now->st_ino == seen->st_ino && now->st_dev == seen->st_dev &&
	       (now->st_mode & S_IFMT) == (seen->st_mode & S_IFMT) &&
	       (!lent || (now->st_mode == (seen->st_mode | lent) && now->st_size == seen->st_size &&
			  now->st_mtim.tv_sec == seen->st_mtim.tv_sec &&
			  now->st_mtim.tv_nsec == seen->st_mtim.tv_nsec));
}

/*
 * Opens the very file or directory that was looked at. *seen becomes what it is now, but for what lending changed.
 * -ESTALE: another one by now. On failure nothing is open.
 */
static int open_source(const struct copy *copy, struct stat *seen, struct source *ret_source)
{
	int kind = S_ISDIR(seen->st_mode) ? O_DIRECTORY : 0, r = 0;
	struct source source = { .lent_fd = FD_NONE };

	source.fd = fd_open_at(copy->from_fd, copy->from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | kind, 0);
	if (source.fd == -EACCES)
		source.fd = open_unreadable(copy, seen, &source);
	if (source.fd < 0)
		r = source.fd == -ELOOP || source.fd == -ENOTDIR || source.fd == -ENXIO ? -ESTALE : source.fd;
	else if (fstat(source.fd, &source.now) < 0)
		r = -errno;
	else if (!is_as_seen(&source, seen))
		r = -ESTALE;
	if (r < 0) {
		(void)!close_source(&source);
		return r;
	}
	if (source.lent_fd < 0)
		*seen = source.now;
	seen->st_mode = stage_closed_mode(copy->closed, seen);
	*ret_source = source;
	return 0;
}

static bool is_unchanged(int fd, const struct stat *before)
{
	struct stat now;

	return fstat(fd, &now) == 0 && now.st_size == before->st_size &&
	       now.st_mtim.tv_sec == before->st_mtim.tv_sec && now.st_mtim.tv_nsec == before->st_mtim.tv_nsec &&
	       now.st_ctim.tv_sec == before->st_ctim.tv_sec && now.st_ctim.tv_nsec == before->st_ctim.tv_nsec;
}

/* Around each call that makes an entry. */
static void begin_making(const struct copy *copy)
{
	if (copy->makes_as_owner)
		identity_take_files(copy->uid, copy->gid);
}

static void end_making(const struct copy *copy)
{
	if (copy->makes_as_owner)
		identity_return_files();
}

static int fill_file(struct copy *copy, const struct source *source, int to, const struct stat *seen)
{
	int r = copy_bytes(source->fd, to, seen);

	if (r == 0)
		r = set_attributes(copy, source->fd, to, seen);
	if (r == 0 && !is_unchanged(source->fd, &source->now))
		r = COPY_CHANGED;
	return r == 0 ? describe(copy, to, seen) : r;
}

static int copy_file(struct copy *copy, struct stat *seen)
{
	cleanup_fd int to = FD_NONE;
	struct source source;
	int r = open_source(copy, seen, &source), closed;

	if (r < 0)
		return r == -ESTALE ? COPY_CHANGED : r;
	/* Nobody else reads what is not complete. */
	begin_making(copy);
	to = fd_open_at(copy->to_fd, copy->to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	end_making(copy);
	r = to < 0 ? to : fill_file(copy, &source, to, seen);
	closed = close_source(&source);
	if (r == COPY_MADE && closed < 0)
		r = closed;
	if (r != COPY_MADE && to >= 0)
		unlinkat(copy->to_fd, copy->to, 0);
	return r;
}

static int copy_directory(struct copy *copy, struct stat *seen)
{
	cleanup_fd int to = FD_NONE;
	struct source source;
	bool is_made;
	int r = open_source(copy, seen, &source), closed;

	if (r < 0)
		return r == -ESTALE ? COPY_CHANGED : r;
	begin_making(copy);
	is_made = mkdirat(copy->to_fd, copy->to, 0700) == 0;
	r = is_made ? 0 : -errno;
	end_making(copy);
	if (r == 0)
		r = to = fd_open_at(copy->to_fd, copy->to, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (r >= 0)
		r = set_attributes(copy, source.fd, to, seen);
	if (r == 0)
		r = describe(copy, to, seen);
	closed = close_source(&source);
	if (r == COPY_MADE && closed < 0)
		r = closed;
	if (r != COPY_MADE && is_made)
		unlinkat(copy->to_fd, copy->to, AT_REMOVEDIR);
	return r;
}

static int finish_unopenable(struct copy *copy, const struct stat *st)
{
	struct timespec times[2] = { st->st_atim, st->st_mtim };
	cleanup_fd int to = fd_open_at(copy->to_fd, copy->to, O_PATH | O_NOFOLLOW, 0);
	int r = to < 0 ? to : give_owner(copy, to, st);

	if (r == 0 && utimensat(copy->to_fd, copy->to, times, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	if (r == 0)
		r = describe(copy, to, st);
	if (r != COPY_MADE)
		unlinkat(copy->to_fd, copy->to, 0);
	return r;
}

/* user.* attributes do not exist on links. */
static int copy_link(struct copy *copy, struct stat *st)
{
	char target[PATH_MAX];
	ssize_t length = readlinkat(copy->from_fd, copy->from, target, sizeof target);

	/* EINVAL: no longer a link. */
	if (length < 0)
		return errno == EINVAL || errno == ENOENT ? COPY_CHANGED : -errno;
	if ((size_t)length >= sizeof target)
		return -ENAMETOOLONG;
	target[length] = 0;
	begin_making(copy);
	length = symlinkat(target, copy->to_fd, copy->to) < 0 ? -errno : 0;
	end_making(copy);
	return length < 0 ? (int)length : finish_unopenable(copy, st);
}

static int copy_whiteout(struct copy *copy, struct stat *st)
{
	if (mknodat(copy->to_fd, copy->to, S_IFCHR | (st->st_mode & 07777), 0) < 0)
		return -errno;
	return finish_unopenable(copy, st);
}

static int copy_once(struct copy *copy)
{
	struct stat st;

	copy->lost_set_id = false;
	if (fstatat(copy->from_fd, copy->from, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISREG(st.st_mode))
		return copy_file(copy, &st);
	if (S_ISLNK(st.st_mode))
		return copy_link(copy, &st);
	if (S_ISDIR(st.st_mode))
		return copy_directory(copy, &st);
	if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(0, 0) && copy->kind == COPY_EXACT)
		return copy_whiteout(copy, &st);
	return COPY_REFUSED;
}

int copy_entry(struct copy *copy)
{
	int r = COPY_CHANGED;

	for (int tries = 0; r == COPY_CHANGED && tries < TRIES_MAX; tries++)
		r = copy_once(copy);
	return r;
}
