/* SPDX-License-Identifier: Apache-2.0 */
#include "place.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>

#include "base/str.h"
#include "os/path.h"

enum { IN_ROOT = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS, JUDGED = IN_ROOT | RESOLVE_NO_SYMLINKS };

static int find_object(const struct inside *inside, const char *path, unsigned how, struct place *place)
{
	uint64_t flags = O_PATH | (how & OBJECT_NOFOLLOW ? O_NOFOLLOW : 0);

	place->rest[0] = 0;
	place->fd = path_open2(inside->root_fd, path, flags, 0, IN_ROOT);
	if (place->fd < 0) {
		int r = -place->fd;

		place->fd = FD_NONE;
		return r;
	}
	return fstat(place->fd, &place->status) < 0 ? errno : 0;
}

/* Whether what is missing has no way back up, and nothing that is not a name. */
static bool is_plain(const char *rest)
{
	while (*rest) {
		size_t length = strcspn(rest, "/");

		if (length == 0 || length > NAME_MAX || (length == 1 && rest[0] == '.') ||
		    (length == 2 && rest[0] == '.' && rest[1] == '.'))
			return false;
		rest += length + (rest[length] == '/' && rest[length + 1]);
	}
	return true;
}

/* Into name, without the slashes at its end. */
static int copy_path(char out[PATH_MAX], const char *path)
{
	size_t length = strlen(path);

	if (length >= PATH_MAX)
		return ENAMETOOLONG;
	memcpy(out, path, length + 1);
	while (length > 1 && out[length - 1] == '/')
		out[--length] = 0;
	return 0;
}

/* The deepest directory that is there, and the rest. */
static int find_above(const struct inside *inside, const char *path, unsigned how, struct place *place)
{
	char above[PATH_MAX];
	char *slash;
	int r = copy_path(above, path);
	size_t length = strlen(above);

	if (r == 0 && !above[1])
		r = EBUSY;
	for (bool is_first = true; r == 0; is_first = false) {
		slash = strrchr(above, '/');
		while (slash > above && slash[-1] == '/')
			slash--;
		*(slash == above ? slash + 1 : slash) = 0;
		r = find_object(inside, above, 0, place);
		if (r != ENOENT || !(how & OBJECT_MISSING) || !above[1])
			break;
		r = is_first && !(how & OBJECT_MISSING) ? ENOENT : 0;
	}
	if (r)
		return r;
	if (!S_ISDIR(place->status.st_mode))
		return ENOTDIR;
	path += strlen(above);
	length -= strlen(above);
	while (length && *path == '/') {
		path++;
		length--;
	}
	if (str_format(place->rest, sizeof place->rest, "%.*s", (int)length, path) < 0 || !is_plain(place->rest))
		return ENOENT;
	return 0;
}

int place_find(const struct inside *inside, const char *path, unsigned how, struct place *place)
{
	int r;

	if (how & OBJECT_NAME)
		return find_above(inside, path, how, place);
	r = find_object(inside, path, how, place);
	return r == ENOENT && how & OBJECT_MISSING ? find_above(inside, path, how, place) : r;
}

int judged_open(const struct inside *inside, const char *path, uint64_t flags, mode_t mode)
{
	return path_open2(inside->root_fd, path, flags, mode, JUDGED);
}

int judged_parent(const struct inside *inside, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	char above[PATH_MAX];

	if (str_format(above, sizeof above, "%.*s", slash == path ? 1 : (int)(slash - path), path) < 0)
		return -ENAMETOOLONG;
	*ret_name = slash + 1;
	return judged_open(inside, above, O_PATH | O_DIRECTORY, 0);
}

bool is_judged(const struct place *place, int fd)
{
	struct stat status;

	return fstat(fd, &status) == 0 && status.st_dev == place->status.st_dev &&
	       status.st_ino == place->status.st_ino;
}
