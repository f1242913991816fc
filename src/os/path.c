/* SPDX-License-Identifier: Apache-2.0 */
#include "os/path.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"

int path_open2(int dir_fd, const char *path, uint64_t flags, mode_t mode, uint64_t resolve)
{
	struct open_how how = { .flags = flags | O_CLOEXEC, .mode = mode, .resolve = resolve };
	long fd;

	/* EAGAIN: a rename raced with RESOLVE_BENEATH; openat2(2) asks to try again. */
	for (int tries = 0; tries < 32; tries++) {
		fd = syscall(SYS_openat2, dir_fd, path, &how, sizeof how);
		if (fd >= 0 || (errno != EINTR && errno != EAGAIN))
			break;
	}
	return fd < 0 ? -errno : (int)fd;
}

int path_open_anchor(const char *path)
{
	return path_open2(AT_FDCWD, path, O_PATH, 0, RESOLVE_NO_MAGICLINKS);
}

DIR *path_list(int fd)
{
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int errnum = fd < 0 ? -fd : errno;

	if (dir)
		return dir;
	close_fd(&fd);
	errno = errnum;
	return NULL;
}

int path_of_fd(int fd, char *out, size_t size)
{
	char link[32];
	struct stat st;
	ssize_t length;
	int r = str_format(link, sizeof link, "/proc/self/fd/%d", fd);

	if (r < 0)
		return r;
	length = readlink(link, out, size);
	if (length < 0)
		return -errno;
	if ((size_t)length >= size)
		return -ENAMETOOLONG;
	out[length] = 0;
	/* A deleted file reads as "… (deleted)"; a file may also really be called so. */
	if (out[0] != '/' || fstat(fd, &st) < 0 || (st.st_nlink == 0))
		return -ENOENT;
	return 0;
}

int path_real(const char *path, char *out, size_t size)
{
	cleanup_fd int fd = path_open_anchor(path);

	if (fd < 0)
		return fd;
	return path_of_fd(fd, out, size);
}

int path_birth_ns(int dir_fd, const char *name, uint64_t *ret_ns)
{
	/* struct statx by words, as in os/mount.c. */
	enum { MASK = 0, BIRTH_SECONDS = 10, BIRTH_NANOSECONDS = 11, WORDS = 256 / 8, BIRTH = 0x800 };
	uint64_t words[WORDS] = { 0 };

	if (syscall(SYS_statx, dir_fd, name, AT_SYMLINK_NOFOLLOW, BIRTH, words) < 0)
		return -errno;
	/* The 32-bit members are the first bytes of their word on the little-endian machines that this runs on. */
	if (!((uint32_t)words[MASK] & BIRTH))
		return -ENODATA;
	*ret_ns = words[BIRTH_SECONDS] * 1000000000ULL + (uint32_t)words[BIRTH_NANOSECONDS];
	return 0;
}

int path_make_directories(int dir_fd, const char *path, mode_t mode)
{
	char part[PATH_MAX];
	int r = path[0] ? str_copy(part, sizeof part, path) : -ENOENT;

	if (r < 0)
		return r;
	for (char *at = part + 1;; at++) {
		char end = *at;

		if (end != '/' && end != 0)
			continue;
		*at = 0;
		if (mkdirat(dir_fd, part, mode) < 0 && errno != EEXIST) {
			int saved = errno;

			/* On a read-only or foreign parent mkdir may fail before it sees that it is there. */
			if (faccessat(dir_fd, part, F_OK, 0) < 0)
				return -saved;
		}
		if (!end)
			return 0;
		*at = end;
	}
}

static int remove_below(int fd, dev_t device);

/* A directory of our own that says that we may not look into it: overlayfs leaves such (work/work has mode 0). */
static int open_locked(int dir_fd, const char *name)
{
	cleanup_fd int fd = fd_open_at(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	char path[32];

	if (fd < 0)
		return fd;
	/* By this name and not by its own, which could be a link by now. */
	if (str_format(path, sizeof path, "/proc/self/fd/%d", fd) < 0 || chmod(path, 0700) < 0)
		return -EACCES;
	return path_open2(fd, ".", O_RDONLY | O_DIRECTORY, 0, 0);
}

static int remove_entry(int dir_fd, const char *name, dev_t device)
{
	cleanup_fd int fd = FD_NONE;
	struct stat st;
	int r;

	if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	fd = fd_open_at(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd == -EACCES)
		fd = open_locked(dir_fd, name);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_dev != device)
		return -EXDEV;
	if ((st.st_mode & 0300) != 0300 && fchmod(fd, 0700) < 0)
		return -errno;
	r = remove_below(take_fd(&fd), device);
	if (r < 0)
		return r;
	return unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

/* Takes fd. */
static int remove_below(int fd, dev_t device)
{
	DIR *dir = path_list(fd);
	struct dirent *entry;
	int r = 0;

	if (!dir)
		return -errno;
	while (r == 0 && (entry = readdir(dir)))
		if (!str_equal(entry->d_name, ".") && !str_equal(entry->d_name, ".."))
			r = remove_entry(fd, entry->d_name, device);
	closedir(dir);
	return r;
}

int path_remove_tree(int dir_fd, const char *path)
{
	struct stat st;

	if (fstatat(dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	return remove_entry(dir_fd, path, st.st_dev);
}

int path_chmod(int path_fd, mode_t mode)
{
	char link[32];
	int r = str_format(link, sizeof link, "/proc/self/fd/%d", path_fd);

	return r < 0 ? r : chmod(link, mode & 07777) < 0 ? -errno : 0;
}

bool path_is_there(const char *path)
{
	return access(path, F_OK) == 0;
}

int path_rename_new(const char *from, const char *to)
{
	if (syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
		return 0;
	/* A file system that cannot promise that: NFS. */
	if (errno != EINVAL || access(to, F_OK) == 0)
		return errno == EINVAL ? -EEXIST : -errno;
	return rename(from, to) < 0 ? -errno : 0;
}

/* The group is chosen by the name: all users' directories of one name would lie in one. */
static int make_apart(int parent_fd, const char *name, mode_t mode)
{
	int before, apart, r;
	bool is_known = ioctl(parent_fd, FS_IOC_GETFLAGS, &before) == 0;

	apart = is_known ? before | FS_TOPDIR_FL : 0;
	is_known = is_known && ioctl(parent_fd, FS_IOC_SETFLAGS, &apart) == 0;
	r = mkdirat(parent_fd, name, mode) < 0 ? -errno : 0;
	if (is_known)
		(void)!ioctl(parent_fd, FS_IOC_SETFLAGS, &before);
	return r;
}

int path_make_apart(const char *parent, const char *name, mode_t mode)
{
	cleanup_fd int fd = fd_open_at(AT_FDCWD, parent, O_RDONLY | O_DIRECTORY, 0);
	char first[PATH_MAX], last[PATH_MAX], random[SESSION_ID_SIZE];
	int r = fd < 0 ? fd : random_session_id(random);

	if (r == 0)
		r = str_format(first, sizeof first, "%s/%s.%s", parent, name, random);
	if (r == 0)
		r = path_join(last, sizeof last, parent, name);
	if (r == 0)
		r = make_apart(fd, path_basename(first), mode);
	if (r < 0)
		return r;
	r = path_rename_new(first, last);
	if (r < 0)
		(void)!rmdir(first);
	return r;
}
