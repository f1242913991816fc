/* SPDX-License-Identifier: Apache-2.0 */
#include "change.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "place.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

/* Directories that are made, names that move, attributes that are set. Paths are judged ones. */

/* One step down, which nobody may have made a link meanwhile. */
static int make_step(int dir_fd, const char *name, mode_t mode)
{
	int fd;

	if (mkdirat(dir_fd, name, mode) < 0 && errno != EEXIST)
		return -errno;
	fd = fd_open_at(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	return fd;
}

int change_make_parents(const struct place *place, const char *rest, mode_t mode, int *ret_fd)
{
	char name[NAME_MAX + 1];
	int fd = fd_duplicate(place->fd);

	while (fd >= 0 && *rest) {
		size_t length = strcspn(rest, "/");
		int next;

		if (str_format(name, sizeof name, "%.*s", (int)length, rest) < 0)
			next = -ENAMETOOLONG;
		else
			next = make_step(fd, name, mode);
		close(fd);
		fd = next;
		rest += length + (rest[length] == '/');
	}
	if (fd < 0)
		return -fd;
	*ret_fd = fd;
	return 0;
}

int change_mkdir(struct inside *inside, const char *path, const char *to)
{
	const struct place *place = &inside->places[0];
	const char *slash = strrchr(place->rest, '/'), *name = slash ? slash + 1 : place->rest;
	cleanup_fd int parent = FD_NONE;
	char above[PATH_MAX];
	int r;

	if (!place->rest[0])
		return EEXIST;
	if (str_format(above, sizeof above, "%.*s", slash ? (int)(slash - place->rest) : 0, place->rest) < 0)
		return ENAMETOOLONG;
	r = change_make_parents(place, above, 0755, &parent);
	if (r)
		return r;
	return mkdirat(parent, name, (mode_t)inside->request.mode) < 0 ? errno : 0;
}

int change_move(struct inside *inside, const char *path, const char *to)
{
	const char *from_name, *to_name;
	cleanup_fd int from = judged_parent(inside, path, &from_name), target = FD_NONE;

	if (!to || from < 0)
		return to ? -from : EINVAL;
	target = judged_parent(inside, to, &to_name);
	if (target < 0)
		return -target;
	return renameat(from, from_name, target, to_name) < 0 ? errno : 0;
}

/* ---- attributes ---- */

static bool is_wanted(char *const *list, const char *name)
{
	for (; *list; list++) {
		size_t length = strcspn(*list, "=");

		if (strlen(name) == length && memcmp(*list, name, length) == 0)
			return true;
	}
	return false;
}

/* As a whole: what is not in the list goes, where its value could have been in it. */
static int set_attributes(int fd, char *const *wanted)
{
	static char names[64 << 10];
	char name[NAME_MAX + 1];
	ssize_t size = flistxattr(fd, names, sizeof names);

	for (ssize_t at = 0; at < size; at += (ssize_t)strlen(names + at) + 1)
		if (strncmp(names + at, "user.", 5) == 0 && !is_wanted(wanted, names + at + 5) &&
		    fremovexattr(fd, names + at) < 0)
			return errno;
	for (; *wanted; wanted++) {
		size_t length = strcspn(*wanted, "=");

		if (str_format(name, sizeof name, "user.%.*s", (int)length, *wanted) < 0)
			return ENAMETOOLONG;
		if (fsetxattr(fd, name, *wanted + length + 1, strlen(*wanted + length + 1), 0) < 0)
			return errno;
	}
	return 0;
}

static int set_on_link(const struct inside *inside, const char *path)
{
	const struct files_request *request = &inside->request;
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = (time_t)(request->mtime_ns / 1000000000),
								  .tv_nsec = (long)(request->mtime_ns % 1000000000) } };
	bool has_uid = request->set & 1u << FILES_HAS_UID, has_gid = request->set & 1u << FILES_HAS_GID;
	const char *name;
	cleanup_fd int parent = judged_parent(inside, path, &name);

	if (parent < 0)
		return -parent;
	if (request->set & (1u << FILES_HAS_MODE | 1u << FILES_HAS_ATTRIBUTES))
		return EOPNOTSUPP;
	if ((has_uid || has_gid) && fchownat(parent, name, has_uid ? (uid_t)request->uid : (uid_t)-1,
					     has_gid ? (gid_t)request->gid : (gid_t)-1, AT_SYMLINK_NOFOLLOW) < 0)
		return errno;
	if (request->set & 1u << FILES_HAS_MTIME && utimensat(parent, name, times, AT_SYMLINK_NOFOLLOW) < 0)
		return errno;
	return 0;
}

static int set_on_file(const struct inside *inside, int fd)
{
	const struct files_request *request = &inside->request;
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = (time_t)(request->mtime_ns / 1000000000),
								  .tv_nsec = (long)(request->mtime_ns % 1000000000) } };
	bool has_uid = request->set & 1u << FILES_HAS_UID, has_gid = request->set & 1u << FILES_HAS_GID;
	int r = request->set & 1u << FILES_HAS_ATTRIBUTES ? set_attributes(fd, request->attributes) : 0;

	if (r == 0 && (has_uid || has_gid) && fchown(fd, has_uid ? (uid_t)request->uid : (uid_t)-1,
						     has_gid ? (gid_t)request->gid : (gid_t)-1) < 0)
		return errno;
	if (r == 0 && request->set & 1u << FILES_HAS_MODE && fchmod(fd, (mode_t)request->mode) < 0)
		return errno;
	if (r == 0 && request->set & 1u << FILES_HAS_MTIME && futimens(fd, times) < 0)
		return errno;
	return r;
}

/*
 * A file that may not be read, where nothing but its mode is asked for: by the descriptor that was judged, since its
 * name may be a link by now. Kernels before 6.6 cannot.
 */
static int set_unread(const struct place *place, mode_t mode)
{
	if (syscall(SYS_fchmodat2, place->fd, "", mode, AT_EMPTY_PATH) < 0)
		return errno == ENOSYS ? EACCES : errno;
	return 0;
}

int change_setattr(struct inside *inside, const char *path, const char *to)
{
	const struct place *place = &inside->places[0];
	uint32_t named = 1u << FILES_HAS_PATH | 1u << FILES_HAS_NOFOLLOW | 1u << FILES_HAS_MODE;
	cleanup_fd int fd = FD_NONE;

	/* Set-ID bits would be nobody's gain, and programs inside may not set them either. */
	if (inside->request.mode & (S_ISUID | S_ISGID))
		return EPERM;
	if (S_ISLNK(place->status.st_mode))
		return set_on_link(inside, path);
	if (!S_ISREG(place->status.st_mode) && !S_ISDIR(place->status.st_mode))
		return EINVAL;
	fd = judged_open(inside, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd == -EACCES && !(inside->request.set & ~named))
		return inside->request.set & 1u << FILES_HAS_MODE ? set_unread(place, (mode_t)inside->request.mode)
								  : 0;
	if (fd < 0)
		return -fd;
	return is_judged(place, fd) ? set_on_file(inside, fd) : EAGAIN;
}
