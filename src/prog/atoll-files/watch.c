/* SPDX-License-Identifier: Apache-2.0 */
#include "watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/str.h"
#include "look.h"
#include "os/fd.h"
#include "os/path.h"
#include "place.h"

/*
 * inotify(7) watches one directory each. One that comes into being below a recursive watch is added first and looked
 * through then, so that what was made in it meanwhile is told, if need be twice. The kernel knows directories by
 * number; two watches of the same one have one number between them.
 */

enum { NODES_MAX = 4096, PATHS_MAX = 1 << 20, EVENTS_SIZE = 16 << 10, DEPTH_MAX = 32 };

enum {
	MASK = IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF |
	       IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK,
	DIRECTORY = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK,
	BELOW = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
};

struct watch {
	uint64_t number, flags;  /* number 0: free */
	char *path;              /* owned: of its directory, as it was judged; held open, it would not be seen to go */
	dev_t device;
	ino_t inode;
	bool is_short;           /* it was told that something is not told */
};

struct node {
	int wd;
	struct watch *watch;
	char *path;              /* owned: below the watch's directory, with a slash behind it, or "" */
};

static struct watch watches[FILES_WATCHES_MAX];
static struct node nodes[NODES_MAX];
static size_t node_count, path_bytes;
static int notify_fd = -1;

int watch_fd(void)
{
	return notify_fd;
}

/* Its directory, if it is still there (owned); -errno. */
static int open_top(const struct inside *inside, const struct watch *watch)
{
	int fd = judged_open(inside, watch->path, O_PATH | O_DIRECTORY, 0);
	struct stat status;

	if (fd < 0)
		return fd;
	if (fstat(fd, &status) == 0 && status.st_dev == watch->device && status.st_ino == watch->inode)
		return fd;
	close(fd);
	return -ENOENT;
}

/* ---- told ---- */

static int send_change(struct inside *inside, const struct watch *watch, const char *change, const char *path)
{
	struct entry entry = { 0 };
	cleanup_fd int fd = FD_NONE, top = FD_NONE;

	frame_begin(&inside->out, FILES_CHANGE);
	frame_put_u64(&inside->out, watch->number);
	field_put_u64(&inside->out, "watch", watch->number);
	field_put_string(&inside->out, "change", change);
	if (path)
		field_put_bytes(&inside->out, "path", path, strlen(path));
	if (path && watch->flags & FILES_WATCH_ENTRIES) {
		top = open_top(inside, watch);
		fd = top < 0 ? top : path_open2(top, *path ? path : ".", O_PATH | O_NOFOLLOW, 0, BELOW);
		entry.dir_fd = fd;
		/* Of a link its target would be its directory's to say. */
		if (fd >= 0 && fstat(fd, &entry.status) == 0)
			entry_put(inside, &inside->out, &entry);
	}
	return frame_end(&inside->out) < 0 ? 0 : frame_send(FILES_FD, &inside->out, NULL, 0);
}

static int tell_short(struct inside *inside, struct watch *watch)
{
	if (watch->is_short)
		return 0;
	watch->is_short = true;
	return send_change(inside, watch, "overflow", NULL);
}

/* ---- directories ---- */

static void drop_node(size_t at)
{
	struct node gone = nodes[at];
	bool is_shared = false;

	nodes[at] = nodes[--node_count];
	path_bytes -= strlen(gone.path) + 1;
	free(gone.path);
	for (size_t i = 0; i < node_count; i++)
		is_shared = is_shared || nodes[i].wd == gone.wd;
	if (!is_shared)
		(void)inotify_rm_watch(notify_fd, gone.wd);
}

static void drop_below(const struct watch *watch, const char *path)
{
	size_t size = strlen(path);

	for (size_t i = node_count; i-- > 0;)
		if (nodes[i].watch == watch && strncmp(nodes[i].path, path, size) == 0)
			drop_node(i);
}

/* dir_fd is open for reading; a positive errno. By the working directory, since a path could lead elsewhere. */
static int add_node(const struct inside *inside, struct watch *watch, int dir_fd, const char *path)
{
	size_t size = strlen(path) + 1;
	char *copy;
	int wd;

	if (node_count == NODES_MAX || path_bytes + size > PATHS_MAX)
		return ENOSPC;
	if (fchdir(dir_fd) < 0)
		return errno;
	wd = inotify_add_watch(notify_fd, ".", MASK);
	if (wd < 0)
		return errno;
	if (fchdir(inside->root_fd) < 0)
		return errno;
	for (size_t i = 0; i < node_count; i++)
		if (nodes[i].wd == wd && nodes[i].watch == watch)
			return 0;
	copy = str_dup(path);
	if (!copy)
		return ENOMEM;
	nodes[node_count++] = (struct node){ .wd = wd, .watch = watch, .path = copy };
	path_bytes += size;
	return 0;
}

static bool is_dots(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

struct adding {
	struct inside *inside;
	struct watch *watch;
	bool is_new;             /* what is in it is told */
	int failed;              /* -errno of the socket */
};

static int add_tree(struct adding *adding, int dir_fd, const char *path, unsigned depth);

/* One entry of a directory that was just added. */
static int add_entry(struct adding *adding, int dir_fd, const char *path, const struct dirent *entry, unsigned depth)
{
	bool is_directory = entry->d_type == DT_DIR;
	char below[PATH_MAX];
	struct stat status;
	cleanup_fd int fd = FD_NONE;

	if (is_dots(entry->d_name) || str_format(below, sizeof below, "%s%s", path, entry->d_name) < 0)
		return 0;
	if (adding->is_new && adding->failed == 0)
		adding->failed = send_change(adding->inside, adding->watch, "create", below);
	if (entry->d_type == DT_UNKNOWN && fstatat(dir_fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0)
		is_directory = S_ISDIR(status.st_mode);
	if (!is_directory || !(adding->watch->flags & FILES_WATCH_RECURSIVE) || depth == DEPTH_MAX)
		return is_directory && depth == DEPTH_MAX ? ENOSPC : 0;
	fd = fd_open_at(dir_fd, entry->d_name, DIRECTORY, 0);
	if (fd < 0 || str_format(below, sizeof below, "%s%s/", path, entry->d_name) < 0)
		return 0; /* it went, or is not to be read */
	return add_tree(adding, fd, below, depth + 1);
}

/* 0, or a positive errno: not all of it is watched. */
static int add_tree(struct adding *adding, int dir_fd, const char *path, unsigned depth)
{
	char *entries;
	int r = add_node(adding->inside, adding->watch, dir_fd, path);
	long n;

	if (r || !(adding->is_new || adding->watch->flags & FILES_WATCH_RECURSIVE))
		return r;
	entries = malloc(EVENTS_SIZE);
	while (entries && r == 0 && (n = syscall(SYS_getdents64, dir_fd, entries, EVENTS_SIZE)) > 0)
		for (long at = 0; r == 0 && at < n;) {
			const struct dirent *entry = (const struct dirent *)(const void *)(entries + at);

			r = add_entry(adding, dir_fd, path, entry, depth);
			at += entry->d_reclen;
		}
	free(entries);
	return entries ? r : ENOMEM;
}

/* ---- operations ---- */

static void forget(struct watch *watch)
{
	drop_below(watch, "");
	free(watch->path);
	watch->path = NULL;
	watch->number = 0;
}

static void close_unused(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(watches); i++)
		if (watches[i].number)
			return;
	close_fd(&notify_fd);
}

int watch_add(struct inside *inside, const char *path, const char *to)
{
	struct adding adding = { .inside = inside };
	cleanup_fd int fd = judged_open(inside, path, DIRECTORY, 0);
	int r;

	if (fd < 0)
		return -fd;
	if (!is_judged(&inside->places[0], fd))
		return EAGAIN;
	for (size_t i = 0; i < ARRAY_SIZE(watches) && !adding.watch; i++)
		if (!watches[i].number)
			adding.watch = &watches[i];
	if (!adding.watch)
		return ENOSPC;
	if (notify_fd < 0)
		notify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (notify_fd < 0)
		return errno == EMFILE ? ENOSPC : errno;
	*adding.watch = (struct watch){ .number = inside->ticket, .flags = inside->request.flags,
					.path = str_dup(path), .device = inside->places[0].status.st_dev,
					.inode = inside->places[0].status.st_ino };
	r = adding.watch->path ? add_tree(&adding, fd, "", 0) : ENOMEM;
	if (r)
		forget(adding.watch);
	else
		field_put_u64(&inside->out, "watch", adding.watch->number);
	close_unused();
	return r;
}

int watch_remove(struct inside *inside, const char *path, const char *to)
{
	for (size_t i = 0; i < ARRAY_SIZE(watches); i++)
		if (watches[i].number && watches[i].number == inside->request.watch) {
			forget(&watches[i]);
			close_unused();
			return 0;
		}
	return ENOENT;
}

/* ---- what changed ---- */

static const char *change_of(uint32_t mask)
{
	return mask & (IN_CREATE | IN_MOVED_TO) ? "create"
	       : mask & IN_MODIFY		? "write"
	       : mask & IN_DELETE		? "remove"
	       : mask & IN_MOVED_FROM		? "rename"
	       : mask & IN_ATTRIB		? "chmod"
						: NULL;
}

/* A directory that came: watched, and what is in it already is told. */
static int join(struct inside *inside, struct watch *watch, const char *path)
{
	struct adding adding = { .inside = inside, .watch = watch, .is_new = true };
	cleanup_fd int top = open_top(inside, watch), fd = top < 0 ? top : path_open2(top, path, DIRECTORY, 0, BELOW);
	char below[PATH_MAX];
	int r = fd < 0 || str_format(below, sizeof below, "%s/", path) < 0 ? 0 : add_tree(&adding, fd, below, 1);

	return adding.failed ? adding.failed : r ? tell_short(inside, watch) : 0;
}

static int tell_node(struct inside *inside, size_t at, const struct inotify_event *event)
{
	struct watch *watch = nodes[at].watch;
	const char *change = change_of(event->mask), *name = event->len ? event->name : "";
	bool is_top = !nodes[at].path[0];
	char path[PATH_MAX], below[PATH_MAX + 1];
	int r = 0;

	/* What a directory says of itself, the one above has said, where it is watched as well. */
	if (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT)) {
		if (is_top && !(event->mask & IN_MOVE_SELF)) {
			r = send_change(inside, watch, "gone", NULL);
			forget(watch);
		} else if (!is_top && event->mask & IN_IGNORED) {
			drop_node(at);
		}
		return r;
	}
	if (!change || (!*name && !is_top) || str_format(path, sizeof path, "%s%s", nodes[at].path, name) < 0)
		return 0;
	r = send_change(inside, watch, change, path);
	if (r == 0 && event->mask & IN_ISDIR && watch->flags & FILES_WATCH_RECURSIVE && *name) {
		if (event->mask & (IN_CREATE | IN_MOVED_TO))
			r = join(inside, watch, path);
		else if (event->mask & IN_MOVED_FROM && str_format(below, sizeof below, "%s/", path) == 0)
			drop_below(watch, below);
	}
	return r;
}

static int tell_event(struct inside *inside, const struct inotify_event *event)
{
	uint64_t told[FILES_WATCHES_MAX];
	size_t count = 0;
	int r = 0;

	if (event->mask & IN_Q_OVERFLOW) {
		for (size_t i = 0; r == 0 && i < ARRAY_SIZE(watches); i++)
			if (watches[i].number)
				r = send_change(inside, &watches[i], "overflow", NULL);
		return r;
	}
	/* Nodes come and go by what is told. */
	for (size_t i = 0; r == 0 && i < node_count && count < ARRAY_SIZE(told); i++) {
		uint64_t number = nodes[i].watch->number;
		bool is_told = false;

		for (size_t j = 0; j < count; j++)
			is_told = is_told || told[j] == number;
		if (nodes[i].wd != event->wd || is_told)
			continue;
		told[count++] = number;
		r = tell_node(inside, i, event);
		i = SIZE_MAX;
	}
	return r;
}

int watch_tell(struct inside *inside)
{
	static char events[EVENTS_SIZE] __attribute__((aligned(8)));
	ssize_t n = notify_fd < 0 ? 0 : read(notify_fd, events, sizeof events);
	int r = 0;

	/* A listing of accounts is as old as the last request otherwise. */
	inside->ticket++;
	for (ssize_t at = 0; r == 0 && at < n;) {
		const struct inotify_event *event = (const struct inotify_event *)(const void *)(events + at);

		r = tell_event(inside, event);
		at += (ssize_t)(sizeof *event + event->len);
	}
	close_unused();
	return r;
}
