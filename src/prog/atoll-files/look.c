/* SPDX-License-Identifier: Apache-2.0 */
#include "look.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "accounts.h"
#include "base/str.h"
#include "change.h"
#include "os/fd.h"
#include "os/path.h"
#include "place.h"

/* Files as they are: opened, and described. */

enum { TEXT_MAX = 64 << 10, ATTRIBUTES_MAX = 256 };

static const char *type_of(mode_t mode)
{
	static const struct {
		mode_t mode;
		const char *name;
	} types[] = {
		{ S_IFREG, "file" }, { S_IFDIR, "directory" }, { S_IFLNK, "symlink" }, { S_IFIFO, "fifo" },
		{ S_IFSOCK, "socket" }, { S_IFCHR, "char" }, { S_IFBLK, "block" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if ((mode & S_IFMT) == types[i].mode)
			return types[i].name;
	return "file";
}

/* Where a link leads, if it leads anywhere; from a directory the kernel resolves it, below our root. */
static void put_link(struct buf *out, const struct entry *entry)
{
	char target[PATH_MAX];
	struct stat status;
	ssize_t size = readlinkat(entry->dir_fd, entry->name ? entry->name : "", target, sizeof target);

	if (size < 0)
		return;
	field_put_bytes(out, "target", target, (size_t)size);
	if (entry->name && fstatat(entry->dir_fd, entry->name, &status, 0) == 0)
		field_put_string(out, "target_type", type_of(status.st_mode));
}

/* ---- attributes ---- */

static bool is_text(const char *bytes, size_t size)
{
	return !memchr(bytes, 0, size);
}

/* "NAME=value" behind what is in text; NULL: it is none that is told. */
static char *read_attribute(int fd, const char *name, char *text, size_t room)
{
	size_t length = strlen(name + 5);
	ssize_t size;

	if (strncmp(name, "user.", 5) != 0 || memchr(name, '=', length + 5) || length + 2 > room)
		return NULL;
	memcpy(text, name + 5, length);
	text[length] = '=';
	size = fgetxattr(fd, name, text + length + 1, room - length - 2);
	if (size < 0 || !is_text(text + length + 1, (size_t)size))
		return NULL;
	text[length + 1 + (size_t)size] = 0;
	return text;
}

/* fd: open for reading. */
static void put_attributes(struct buf *out, int fd)
{
	static char names[TEXT_MAX], values[TEXT_MAX];
	const char *list[ATTRIBUTES_MAX + 1];
	ssize_t size = flistxattr(fd, names, sizeof names);
	size_t count = 0, used = 0;

	for (ssize_t at = 0; at < size && count < ATTRIBUTES_MAX; at += (ssize_t)strlen(names + at) + 1) {
		list[count] = read_attribute(fd, names + at, values + used, sizeof values - used);
		if (list[count])
			used += strlen(list[count++]) + 1;
	}
	list[count] = NULL;
	field_put_strings(out, "attributes", list);
}

static void put_attributes_of(struct buf *out, const struct entry *entry)
{
	cleanup_fd int fd = FD_NONE;

	/* What else there is may have somebody at its other end. */
	if (!S_ISREG(entry->status.st_mode) && !S_ISDIR(entry->status.st_mode))
		return;
	fd = entry->name ? fd_open_at(entry->dir_fd, entry->name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0)
			 : fd_duplicate(entry->dir_fd);
	if (fd >= 0)
		put_attributes(out, fd);
}

void entry_put(struct inside *inside, struct buf *out, const struct entry *entry)
{
	const struct stat *status = &entry->status;

	field_put_string(out, "file_type", type_of(status->st_mode));
	field_put_u64(out, "size", (uint64_t)status->st_size);
	field_put_u64(out, "mode", status->st_mode & 07777);
	field_put_u64(out, "uid", status->st_uid);
	field_put_u64(out, "gid", status->st_gid);
	field_put_string(out, "owner", accounts_user(inside, status->st_uid));
	field_put_string(out, "group", accounts_group(inside, status->st_gid));
	field_put_u64(out, "links", status->st_nlink);
	field_put_u64(out, "mtime_ns", status->st_mtim.tv_sec < 0 ? 0 : (uint64_t)status->st_mtim.tv_sec * 1000000000 +
										(uint64_t)status->st_mtim.tv_nsec);
	if (S_ISLNK(status->st_mode))
		put_link(out, entry);
	if (entry->has_attributes)
		put_attributes_of(out, entry);
}

int look_stat(struct inside *inside, const char *path, const char *to)
{
	struct place *place = &inside->places[0];
	struct entry entry = { .dir_fd = place->fd, .status = place->status,
			       .has_attributes = inside->request.flags & FILES_STAT_ATTRIBUTES };
	cleanup_fd int parent = FD_NONE, fd = FD_NONE;

	/* A link is asked about in its directory; attributes need the file open, which only its user may. */
	if (S_ISLNK(place->status.st_mode))
		parent = judged_parent(inside, path, &entry.name);
	else if (entry.has_attributes && (S_ISREG(place->status.st_mode) || S_ISDIR(place->status.st_mode)))
		fd = judged_open(inside, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (parent >= 0)
		entry.dir_fd = parent;
	else
		entry.name = NULL;
	if (fd >= 0 && is_judged(place, fd))
		entry.dir_fd = fd;
	else
		entry.has_attributes = false;
	entry_put(inside, &inside->out, &entry);
	return 0;
}

/* ---- open ---- */

static int flags_of(uint64_t flags)
{
	int kept = flags & FILES_OPEN_WRITE ? (flags & FILES_OPEN_READ ? O_RDWR : O_WRONLY) : O_RDONLY;

	kept |= flags & FILES_OPEN_APPEND ? O_APPEND : 0;
	return kept | O_NONBLOCK | O_NOCTTY;
}

static int create(struct inside *inside, const char *path, mode_t mode)
{
	const struct place *place = &inside->places[0];
	const char *slash = strrchr(place->rest, '/'), *name = slash ? slash + 1 : place->rest;
	cleanup_fd int parent = FD_NONE;
	char above[PATH_MAX];
	int fd, r;

	if (!(inside->request.flags & FILES_OPEN_CREATE) || (slash && !(inside->request.flags & FILES_OPEN_PARENTS)))
		return -ENOENT;
	if (str_format(above, sizeof above, "%.*s", slash ? (int)(slash - place->rest) : 0, place->rest) < 0)
		return -ENAMETOOLONG;
	r = change_make_parents(place, above, 0755, &parent);
	if (r)
		return -r;
	/* What stands there by now was not judged. */
	fd = fd_open_at(parent, name, flags_of(inside->request.flags) | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
	return fd;
}

/* The object that was judged, and nothing that took its place; what is not a regular file is not even opened. */
static int open_again(struct inside *inside, const char *path)
{
	const struct place *place = &inside->places[0];
	uint64_t flags = inside->request.flags;
	int fd;

	if (flags & FILES_OPEN_CREATE && flags & FILES_OPEN_EXCLUSIVE)
		return -EEXIST;
	if (!S_ISREG(place->status.st_mode))
		return S_ISDIR(place->status.st_mode) ? -EISDIR : -EINVAL;
	fd = judged_open(inside, path, (uint64_t)flags_of(flags), 0);
	if (fd >= 0 && !is_judged(place, fd)) {
		close(fd);
		return -EAGAIN;
	}
	if (fd >= 0 && flags & FILES_OPEN_TRUNCATE && flags & FILES_OPEN_WRITE && ftruncate(fd, 0) < 0) {
		int r = -errno;

		close(fd);
		return r;
	}
	return fd;
}

int look_open(struct inside *inside, const char *path, const char *to)
{
	bool has_mode = inside->request.set & 1u << FILES_HAS_MODE;
	struct entry entry = { 0 };
	int fd;

	if (inside->request.flags & (FILES_OPEN_APPEND | FILES_OPEN_TRUNCATE | FILES_OPEN_CREATE) &&
	    !(inside->request.flags & FILES_OPEN_WRITE))
		return EINVAL;
	fd = inside->places[0].rest[0] ? create(inside, path, has_mode ? (mode_t)inside->request.mode : 0644)
				       : open_again(inside, path);
	if (fd < 0)
		return -fd;
	/* O_NONBLOCK means nothing to a regular file, and something to who asks for the flags of his descriptor. */
	if (fd_set_nonblocking(fd, false) < 0 || fstat(fd, &entry.status) < 0) {
		close(fd);
		return EIO;
	}
	inside->result_fd = entry.dir_fd = fd;
	/* Who writes it anew has to know what the old one leaves behind. */
	entry.has_attributes = !inside->places[0].rest[0] && inside->request.flags & FILES_OPEN_WRITE;
	entry_put(inside, &inside->out, &entry);
	return 0;
}
