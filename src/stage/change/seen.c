/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/change/seen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "stage/record/paths.h"
#include "stage/record/store.h"
#include "wire/frame.h"

#define SEEN_FILE "seen"
#define SEEN_FILE_NEW "seen.new"

enum { SEEN_FRAME = 59, BYTES_MAX = 32 << 20 };

struct seen_entry {
	char *path;           /* owned */
	uint32_t tree;
	uint64_t inode, birth_ns;
};

struct seen {
	struct seen_entry *items;      /* owned */
	size_t count, capacity;
	struct paths index;
	bool has_new;
};

void seen_free(struct seen *seen)
{
	if (!seen)
		return;
	for (size_t i = 0; i < seen->count; i++)
		free(seen->items[i].path);
	free(seen->items);
	paths_done(&seen->index);
	free(seen);
}

static int add(struct seen *seen, uint32_t tree, const char *path, uint64_t inode, uint64_t birth_ns)
{
	size_t length = strlen(path);
	struct seen_entry *item;
	int r;

	if (seen->count == SEEN_MAX || paths_find(&seen->index, tree, path, length) != PATHS_NONE)
		return 0;
	if (seen->count == seen->capacity) {
		size_t capacity = seen->capacity ? 2 * seen->capacity : 64;
		struct seen_entry *items = reallocarray(seen->items, capacity, sizeof *items);

		if (!items)
			return -ENOMEM;
		seen->items = items;
		seen->capacity = capacity;
	}
	item = &seen->items[seen->count];
	*item = (struct seen_entry){ str_dup(path), tree, inode, birth_ns };
	r = item->path ? paths_put(&seen->index, tree, item->path, length, (uint32_t)seen->count) : -ENOMEM;
	if (r < 0)
		free(item->path);
	else
		seen->count++;
	return r;
}

static int parse(struct seen *seen, char *bytes, size_t size)
{
	struct frame frame;
	uint32_t count;
	int r = frame_open(&frame, bytes, size);

	if (r < 0 || frame.type != SEEN_FRAME)
		return -EBADMSG;
	count = frame_get_u32(&frame);
	for (uint32_t i = 0; i < count && r == 0; i++) {
		uint32_t tree = frame_get_u32(&frame);
		const char *path = frame_get_string(&frame);
		uint64_t inode = frame_get_u64(&frame), birth_ns = frame_get_u64(&frame);

		r = frame.error || !path || tree >= STAGE_TREES_MAX ? -EBADMSG : add(seen, tree, path, inode, birth_ns);
	}
	return r;
}

static int load_session(struct seen *seen, int sessions_fd, const char *session)
{
	char path[SESSION_ID_SIZE + sizeof "/" STAGE_DIRECTORY];
	cleanup_fd int stage_fd = FD_NONE;
	cleanup_free char *bytes = NULL;
	size_t size;
	int r = str_format(path, sizeof path, "%s/" STAGE_DIRECTORY, session);

	if (r == 0)
		r = stage_fd = path_open2(sessions_fd, path, O_RDONLY | O_DIRECTORY, 0, STAGE_RESOLVE_BENEATH);
	if (r >= 0)
		r = stage_load_file(stage_fd, SEEN_FILE, BYTES_MAX, &bytes, &size);
	if (r == 0)
		r = parse(seen, bytes, size);
	return r == -ENOMEM ? r : 0;
}

int seen_load(int sessions_fd, const struct stage_record *record, struct seen **ret_seen)
{
	struct seen *seen = calloc(1, sizeof *seen);
	int r = seen ? load_session(seen, sessions_fd, record->session) : -ENOMEM;

	if (r == 0 && !str_equal(record->origin, record->session))
		r = load_session(seen, sessions_fd, record->origin);
	if (r < 0) {
		seen_free(seen);
		seen = NULL;
	}
	*ret_seen = seen;
	return r;
}

bool seen_has(const struct seen *seen, size_t tree, const struct stage_entry *entry)
{
	uint32_t at = seen ? paths_find(&seen->index, (uint32_t)tree, entry->path, strlen(entry->path)) : PATHS_NONE;
	uint64_t birth_ns;

	return at != PATHS_NONE && seen->items[at].inode == entry->host.st_ino &&
	       path_birth_ns(entry->host_dir_fd, entry->name, &birth_ns) == 0 &&
	       seen->items[at].birth_ns == birth_ns;
}

bool seen_had(const struct seen *seen, size_t tree, const char *path)
{
	return seen && paths_find(&seen->index, (uint32_t)tree, path, strlen(path)) != PATHS_NONE;
}

void seen_note(struct seen *seen, size_t tree, const struct stage_entry *entry)
{
	size_t count = seen->count;
	uint64_t birth_ns;

	/* A number alone may be another directory's soon. */
	if (entry->host_dir_fd < 0 || path_birth_ns(entry->host_dir_fd, entry->name, &birth_ns) < 0)
		return;
	if (add(seen, (uint32_t)tree, entry->path, entry->host.st_ino, birth_ns) == 0)
		seen->has_new |= seen->count > count;
}

int seen_store(const struct seen *seen, int stage_fd)
{
	cleanup_fd int fd = FD_NONE;
	cleanup_buf struct buf out;
	int r;

	buf_init(&out, BYTES_MAX);
	if (!seen->has_new)
		return 0;
	frame_begin(&out, SEEN_FRAME);
	frame_put_u32(&out, (uint32_t)seen->count);
	for (size_t i = 0; i < seen->count; i++) {
		frame_put_u32(&out, seen->items[i].tree);
		frame_put_string(&out, seen->items[i].path);
		frame_put_u64(&out, seen->items[i].inode);
		frame_put_u64(&out, seen->items[i].birth_ns);
	}
	r = frame_end(&out);
	if (r == 0)
		r = fd = fd_open_at(stage_fd, SEEN_FILE_NEW, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
	if (r >= 0)
		r = fd_write_full(fd, out.bytes, out.size);
	if (r == 0 && renameat(stage_fd, SEEN_FILE_NEW, stage_fd, SEEN_FILE) < 0)
		r = -errno;
	return r;
}
