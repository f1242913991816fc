/* SPDX-License-Identifier: Apache-2.0 */
#include "tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/str.h"
#include "look.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/path.h"
#include "place.h"
#include "wire/link.h"

/*
 * Whole trees, however deep and wide somebody inside has made them. A listing comes in pages; where it stopped is kept
 * for the next one, for a few listings, and found again by counting where it is not. Removing holds the deepest
 * directories open, a bounded number, and begins again from the top where it comes above them; after a while it says
 * that it is not done, so that others get their turn.
 */

enum { ENTRIES_SIZE = 8 << 10, WALKS_MAX = 4, WINDOW = 64, STEP_MS = 1000, ROW_MAX = 40 << 10 };

enum { DIRECTORY = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK };

struct level {
	int fd;                  /* owned */
	size_t path_size;        /* of the walk's path up to here */
	char *entries;           /* owned */
	size_t at, size;
};

struct walk {
	struct walk *next;
	uint64_t count, depth;
	dev_t device;            /* of where it began */
	ino_t inode;
	size_t level_count;
	struct level levels[FILES_DEPTH_MAX];
	char path[PATH_MAX];     /* of the directory in hand, relative, with a slash at its end, or "" */
};

static void close_level(struct level *level)
{
	close_fd(&level->fd);
	free(level->entries);
	level->entries = NULL;
}

static void walk_free(struct walk *walk)
{
	while (walk->level_count)
		close_level(&walk->levels[--walk->level_count]);
	free(walk);
}

/* Takes fd. */
static int enter(struct walk *walk, int fd, const char *name)
{
	struct level *level = &walk->levels[walk->level_count];
	size_t size = walk->level_count ? walk->levels[walk->level_count - 1].path_size : 0;

	if (name && str_format(walk->path + size, sizeof walk->path - size, "%s/", name) < 0) {
		close(fd);
		walk->path[size] = 0;
		return ENAMETOOLONG;
	}
	*level = (struct level){ .fd = fd, .path_size = strlen(walk->path), .entries = malloc(ENTRIES_SIZE) };
	if (!level->entries) {
		close(fd);
		return ENOMEM;
	}
	walk->level_count++;
	return 0;
}

static bool is_dots(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* The next entry of the deepest directory, not taken yet; NULL: it has no more, or cannot be read. */
static struct dirent *peek(struct level *level)
{
	for (;;) {
		struct dirent *entry;

		if (level->at >= level->size) {
			long n = syscall(SYS_getdents64, level->fd, level->entries, ENTRIES_SIZE);

			if (n <= 0)
				return NULL;
			level->size = (size_t)n;
			level->at = 0;
		}
		entry = (struct dirent *)(void *)(level->entries + level->at);
		if (!is_dots(entry->d_name))
			return entry;
		level->at += entry->d_reclen;
	}
}

/* Takes the entry; a directory is gone into. A positive errno of that. */
static int advance(struct walk *walk, const struct dirent *entry, bool is_directory)
{
	struct level *level = &walk->levels[walk->level_count - 1];
	char name[NAME_MAX + 1];
	int fd;

	level->at += entry->d_reclen;
	walk->count++;
	if (!is_directory || walk->level_count >= walk->depth)
		return 0;
	if (str_copy(name, sizeof name, entry->d_name) < 0)
		return ENAMETOOLONG;
	fd = fd_open_at(level->fd, name, DIRECTORY, 0);
	return fd < 0 ? -fd : enter(walk, fd, name);
}

/* The next entry of the whole; NULL: there is none. */
static struct dirent *next_entry(struct walk *walk)
{
	while (walk->level_count) {
		struct level *level = &walk->levels[walk->level_count - 1];
		struct dirent *entry = peek(level);

		walk->path[level->path_size] = 0;
		if (entry)
			return entry;
		close_level(level);
		walk->level_count--;
	}
	return NULL;
}

static bool is_directory(const struct level *level, const struct dirent *entry)
{
	struct stat status;

	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type == DT_DIR;
	return fstatat(level->fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
}

/* -ENOBUFS, -EMSGSIZE: it is too long. */
static int format_row(struct inside *inside, const char *path, const struct entry *entry, struct buf *row)
{
	frame_begin(row, LINK_ROW);
	field_put_bytes(row, "path", path, strlen(path));
	entry_put(inside, row, entry);
	return frame_end(row);
}

/* One row; -ENOBUFS: it does not fit any more. */
static int put_row(struct inside *inside, struct walk *walk, const struct dirent *dirent, struct buf *row)
{
	const struct level *level = &walk->levels[walk->level_count - 1];
	struct entry entry = { .dir_fd = level->fd, .name = dirent->d_name,
			       .has_attributes = inside->request.flags & FILES_STAT_ATTRIBUTES };
	char path[PATH_MAX + NAME_MAX];
	int r;

	/* It went meanwhile. */
	if (fstatat(level->fd, dirent->d_name, &entry.status, AT_SYMLINK_NOFOLLOW) < 0) {
		(void)advance(walk, dirent, false);
		return 0;
	}
	if (str_format(path, sizeof path, "%s%s", walk->path, dirent->d_name) < 0)
		return -ENAMETOOLONG;
	r = format_row(inside, path, &entry, row);
	/* Whoever gives a file more attributes than a row takes hides neither it nor what comes behind it. */
	if (r < 0 && entry.has_attributes) {
		entry.has_attributes = false;
		r = format_row(inside, path, &entry, row);
	}
	if (r == 0 && inside->rows.size + row->size > FILES_ROWS_MAX)
		return -ENOBUFS;
	if (r == 0)
		buf_put(&inside->rows, row->bytes, row->size);
	if (r == 0)
		(void)advance(walk, dirent, S_ISDIR(entry.status.st_mode));
	return r < 0 ? r : buf_error(&inside->rows);
}

/* ---- where a listing stopped ---- */

static struct walk *take_walk(struct inside *inside)
{
	const struct place *place = &inside->places[0];
	uint64_t depth = inside->request.depth ? inside->request.depth : 1;

	for (struct walk **at = &inside->walks; *at; at = &(*at)->next) {
		struct walk *walk = *at;

		if (walk->count != inside->request.from || walk->depth != depth ||
		    walk->device != place->status.st_dev || walk->inode != place->status.st_ino)
			continue;
		*at = walk->next;
		return walk;
	}
	return NULL;
}

static void keep_walk(struct inside *inside, struct walk *walk)
{
	struct walk **at = &inside->walks;

	walk->next = inside->walks;
	inside->walks = walk;
	for (size_t i = 0; i < WALKS_MAX && *at; i++)
		at = &(*at)->next;
	if (*at) {
		walk_free(*at);
		*at = NULL;
	}
}

/* From the beginning up to the entry that is asked for. */
static int begin_walk(struct inside *inside, const char *path, struct walk **ret)
{
	const struct place *place = &inside->places[0];
	struct dirent *entry;
	struct walk *walk;
	int fd = judged_open(inside, path, DIRECTORY, 0), r;

	if (fd < 0)
		return -fd;
	walk = calloc(1, sizeof *walk);
	if (!walk || !is_judged(place, fd)) {
		free(walk);
		close(fd);
		return walk ? EAGAIN : ENOMEM;
	}
	walk->depth = inside->request.depth ? inside->request.depth : 1;
	walk->device = place->status.st_dev;
	walk->inode = place->status.st_ino;
	r = enter(walk, fd, NULL);
	while (r == 0 && walk->count < inside->request.from && (entry = next_entry(walk)))
		(void)advance(walk, entry, is_directory(&walk->levels[walk->level_count - 1], entry));
	if (r)
		walk_free(walk);
	else
		*ret = walk;
	return r;
}

int tree_readdir(struct inside *inside, const char *path, const char *to)
{
	struct walk *walk = inside->request.from ? take_walk(inside) : NULL;
	struct dirent *entry = NULL;
	struct buf row;
	int r = walk ? 0 : begin_walk(inside, path, &walk);

	if (r)
		return r;
	buf_reset(&inside->rows);
	buf_init(&row, ROW_MAX);
	while (r == 0 && (entry = next_entry(walk)))
		r = put_row(inside, walk, entry, &row);
	buf_done(&row);
	if (r == 0 || (r == -ENOBUFS && inside->rows.size)) {
		field_put_bytes(&inside->out, "rows", inside->rows.bytes, inside->rows.size);
		field_put_string(&inside->out, "kind", "entry");
		field_put_u64(&inside->out, "next", entry ? walk->count : 0);
		r = 0;
	}
	if (r == 0 && entry)
		keep_walk(inside, walk);
	else
		walk_free(walk);
	return -r;
}

/* ---- removing ---- */

/* The deepest of the directories that are being emptied; what is above them is found from the top again. */
struct window {
	int fds[WINDOW];
	char names[WINDOW][NAME_MAX + 1]; /* of each in the one above */
	size_t count;
	bool has_lost;           /* one that is above the first */
	uint64_t until_ns;
};

static void window_pop(struct window *window)
{
	close_fd(&window->fds[--window->count]);
}

static int window_push(struct window *window, int fd, const char *name)
{
	if (window->count == WINDOW) {
		close_fd(&window->fds[0]);
		memmove(window->fds, window->fds + 1, (WINDOW - 1) * sizeof window->fds[0]);
		memmove(window->names, window->names + 1, (WINDOW - 1) * sizeof window->names[0]);
		window->count--;
		window->has_lost = true;
	}
	window->fds[window->count] = fd;
	return str_copy(window->names[window->count++], sizeof window->names[0], name) < 0 ? ENAMETOOLONG : 0;
}

/* A name that is not an empty directory goes; 0, or ENOTEMPTY: it is one, with something in it. */
static int remove_name(int dir_fd, const char *name)
{
	if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return errno;
	if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	return errno == EEXIST ? ENOTEMPTY : errno == ENOTDIR ? EPERM : errno;
}

/* Empties a directory down to the first that has something in it, whose name is in found. ENOTEMPTY: there is one. */
static int empty(int fd, char found[NAME_MAX + 1], uint64_t until_ns)
{
	static char entries[32 << 10];
	long n;

	if (lseek(fd, 0, SEEK_SET) < 0)
		return errno;
	while ((n = syscall(SYS_getdents64, fd, entries, sizeof entries)) > 0)
		for (long at = 0; at < n;) {
			const struct dirent *entry = (const struct dirent *)(const void *)(entries + at);
			/* A directory is most often not empty: to try costs more than to look. */
			int r = is_dots(entry->d_name) ? 0
				: entry->d_type == DT_DIR ? ENOTEMPTY : remove_name(fd, entry->d_name);

			if (r == ENOTEMPTY && str_copy(found, NAME_MAX + 1, entry->d_name) < 0)
				return ENAMETOOLONG;
			if (r == 0 && clock_monotonic_ns() > until_ns)
				r = EINPROGRESS;
			if (r)
				return r;
			at += entry->d_reclen;
		}
	return n < 0 ? errno : 0;
}

/* All that is in window->fds[0] and below. 0: it is empty; EINPROGRESS; ESTALE: to be begun again from the top. */
static int empty_all(struct window *window)
{
	char name[NAME_MAX + 1];

	for (;;) {
		int r = empty(window->fds[window->count - 1], name, window->until_ns), fd;

		if (r == ENOTEMPTY) {
			fd = fd_open_at(window->fds[window->count - 1], name, DIRECTORY, 0);
			if (fd < 0)
				return -fd;
			r = window_push(window, fd, name);
			if (r)
				return r;
			continue;
		}
		if (r)
			return r;
		if (window->count == 1)
			return window->has_lost ? ESTALE : 0;
		if (unlinkat(window->fds[window->count - 2], window->names[window->count - 1], AT_REMOVEDIR) < 0 &&
		    errno != ENOENT && errno != ENOTEMPTY && errno != EEXIST)
			return errno;
		window_pop(window);
	}
}

static int remove_tree(int parent, const char *name)
{
	struct window window = { .until_ns = clock_monotonic_ns() + STEP_MS * UINT64_C(1000000) };
	int r = ESTALE;

	while (r == ESTALE) {
		int fd = fd_open_at(parent, name, DIRECTORY, 0);

		if (fd < 0)
			return -fd;
		window.has_lost = false;
		r = window_push(&window, fd, name);
		if (r == 0)
			r = empty_all(&window);
		while (window.count)
			window_pop(&window);
		if (r == ESTALE && clock_monotonic_ns() > window.until_ns)
			r = EINPROGRESS;
	}
	if (r == 0)
		r = remove_name(parent, name);
	return r;
}

int tree_remove(struct inside *inside, const char *path, const char *to)
{
	const char *name;
	cleanup_fd int parent = judged_parent(inside, path, &name);
	struct stat status;
	int r;

	if (parent < 0)
		return -parent;
	if (fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return errno;
	r = remove_name(parent, name);
	if (r == ENOTEMPTY && inside->request.flags & FILES_REMOVE_RECURSIVE)
		r = remove_tree(parent, name);
	if (r != EINPROGRESS)
		return r;
	field_put_u64(&inside->out, "again", 1);
	return 0;
}
