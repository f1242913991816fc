/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/change/repositories.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"

/*
 * Theory of operation. Changes come in the order of a walk, so the directories above one path are mostly those above
 * the one before: what was found out about each is kept as a stack, of which as much stays as the paths have in common.
 */

enum { PATH_BYTES_MAX = 2 << 20, HAS_HEAD = 1, HAS_OBJECTS = 2, HAS_REFS = 4, HAS_COMMONDIR = 8 };

/* A directory above the path that was asked about last, that path itself included. */
struct level {
	size_t length;
	bool is_repository, is_on_host, has_host_directory;
};

struct repositories {
	const struct stage_stack *stack;
	struct buf path;          /* the one that levels are about */
	struct level *levels;
	size_t count, capacity;
};

struct repositories *repositories_new(const struct stage_stack *stack)
{
	struct repositories *repositories = calloc(1, sizeof *repositories);

	if (repositories) {
		repositories->stack = stack;
		buf_init(&repositories->path, PATH_BYTES_MAX);
	}
	return repositories;
}

void repositories_free(struct repositories *repositories)
{
	if (!repositories)
		return;
	buf_done(&repositories->path);
	free(repositories->levels);
	free(repositories);
}

static const struct {
	const char *name;
	int bit;
} parts[] = {
	{ "HEAD", HAS_HEAD }, { "objects", HAS_OBJECTS }, { "refs", HAS_REFS }, { "commondir", HAS_COMMONDIR },
};

/*
 * Which of the first count parts lie in this directory of one side, of any type: a link leads to a directory as well.
 * -ENOENT: that side has no such directory.
 */
static int look(int side_fd, const char *path, size_t count)
{
	cleanup_fd int fd = stage_open_beneath(side_fd, path, O_PATH | O_DIRECTORY, 0);
	struct stat st;
	int found = 0;

	if (fd < 0)
		return fd == -ENOTDIR || fd == -ELOOP || fd == -EXDEV ? -ENOENT : fd;
	for (size_t i = 0; i < count; i++)
		if (fstatat(fd, parts[i].name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !stage_is_whiteout(&st))
			found |= parts[i].bit;
	return found;
}

/* The same of all layers together with the host, of which *ret_host is what it has alone. */
static int look_at_all(const struct stage_stack *stack, const char *path, size_t count, int *ret_host)
{
	int host = stack->host_fd < 0 ? -ENOENT : look(stack->host_fd, path, count), found = host > 0 ? host : 0;

	if (host < 0 && host != -ENOENT)
		return host;
	for (size_t i = 0; i < stack->count; i++) {
		int layer = look(stack->layers[i], path, count);

		if (layer < 0 && layer != -ENOENT)
			return layer;
		found |= layer > 0 ? layer : 0;
	}
	*ret_host = host;
	return found;
}

static bool is_whole(int found)
{
	return found > 0 && found & HAS_HEAD &&
	       (found & HAS_COMMONDIR || (found & HAS_OBJECTS && found & HAS_REFS));
}

/* path ends where the level does. Most directories have no HEAD, and are done with that. */
static int fill(const struct repositories *repositories, const char *path, struct level *level)
{
	int host, found = look_at_all(repositories->stack, path, 1, &host);

	if (found > 0)
		found = look_at_all(repositories->stack, path, ARRAY_SIZE(parts), &host);
	if (found < 0)
		return found;
	level->is_repository = is_whole(found);
	level->is_on_host = is_whole(host);
	level->has_host_directory = host >= 0;
	return 0;
}

static int add_level(struct repositories *repositories, char *path, size_t length)
{
	char behind = path[length];
	struct level *level;
	int r;

	if (repositories->count == repositories->capacity) {
		size_t capacity = repositories->capacity ? 2 * repositories->capacity : 32;
		struct level *levels = reallocarray(repositories->levels, capacity, sizeof *levels);

		if (!levels)
			return -ENOMEM;
		repositories->levels = levels;
		repositories->capacity = capacity;
	}
	level = &repositories->levels[repositories->count];
	*level = (struct level){ .length = length };
	path[length] = 0;
	r = fill(repositories, path, level);
	path[length] = behind;
	repositories->count += r == 0;
	return r;
}

/* Drops the levels that are not in the first size bytes of the new path. */
static void keep_what_is_alike(struct repositories *repositories, const char *path, size_t size)
{
	const char *old = repositories->count ? (const char *)repositories->path.bytes : "";
	size_t alike = 0;

	while (alike < size && path[alike] == old[alike])
		alike++;
	while (repositories->count) {
		size_t length = repositories->levels[repositories->count - 1].length;

		if (!length || (length <= alike && (length == size || path[length] == '/')))
			return;
		repositories->count--;
	}
}

/* Looks at the directories in the first size bytes of path. */
static int look_at_levels(struct repositories *repositories, const char *path, size_t size)
{
	size_t length;
	char *copy;
	int r = 0;

	keep_what_is_alike(repositories, path, size);
	buf_reset(&repositories->path);
	buf_put(&repositories->path, path, size);
	buf_put_char(&repositories->path, 0);
	if (buf_error(&repositories->path))
		return buf_error(&repositories->path);
	copy = (char *)repositories->path.bytes;
	if (!repositories->count)
		r = add_level(repositories, copy, 0);
	if (r < 0)
		return r;
	length = repositories->levels[repositories->count - 1].length;
	while (r == 0 && length < size) {
		length += length > 0;
		length += strcspn(path + length, "/");
		r = add_level(repositories, copy, length);
	}
	return r;
}

int repositories_of(struct repositories *repositories, const char *path, bool is_directory,
		    struct repository ret[REPOSITORIES_NESTED_MAX])
{
	const char *slash = strrchr(path, '/');
	size_t size = is_directory ? strlen(path) : slash ? (size_t)(slash - path) : 0;
	int count = 0, r = look_at_levels(repositories, path, size);

	if (r < 0) {
		repositories->count = 0;
		return r;
	}
	for (size_t i = 0; i < repositories->count; i++) {
		const struct level *level = &repositories->levels[i];

		if (!level->is_repository)
			continue;
		if (count == REPOSITORIES_NESTED_MAX)
			return -E2BIG;
		ret[count++] = (struct repository){ level->length, level->is_on_host, level->has_host_directory };
	}
	return count;
}
