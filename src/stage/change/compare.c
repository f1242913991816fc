/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/change/compare.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/str.h"
#include "os/path.h"
#include "stage/change/change.h"
#include "stage/layer/layer.h"
#include "stage/record/store.h"

enum { CHUNK = 64 << 10, LIST_MAX = 64 << 10, VALUE_MAX = 64 << 10, LINK_SIZE = 32 + 256 };

void compare_done(struct compare *compare)
{
	free(compare->buffers);
	compare->buffers = NULL;
}

int compare_open(const struct compare_side *side)
{
	/* Not blocking: a FIFO may have taken the file's place, which fstat then tells. */
	cleanup_fd int fd = path_open2(side->dir_fd, side->name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW, 0,
				       STAGE_RESOLVE_BENEATH);
	struct stat st;

	if (fd < 0)
		return fd == -ENOENT || fd == -ELOOP ? -ESTALE : fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	return stage_stat_is_same(&st, side->st) ? take_fd(&fd) : -ESTALE;
}

/* Until size bytes or the end. The number, or -errno. */
static ssize_t read_chunk(int fd, uint8_t *out, size_t size)
{
	size_t at = 0;

	while (at < size) {
		ssize_t n = read(fd, out + at, size - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		at += (size_t)n;
	}
	return (ssize_t)at;
}

static int compare_bytes(struct compare *compare, int a, int b)
{
	for (;;) {
		ssize_t size_a = read_chunk(a, compare->buffers, CHUNK), size_b;

		if (size_a < 0)
			return (int)size_a;
		size_b = read_chunk(b, compare->buffers + CHUNK, CHUNK);
		if (size_b < 0)
			return (int)size_b;
		if (size_a != size_b || memcmp(compare->buffers, compare->buffers + CHUNK, (size_t)size_a) != 0)
			return 0;
		if (size_a < CHUNK)
			return 1;
	}
}

int compare_files(struct compare *compare, const struct compare_side *a, const struct compare_side *b)
{
	cleanup_fd int fd_a = FD_NONE, fd_b = FD_NONE;
	uint64_t size = (uint64_t)a->st->st_size;

	if (a->st->st_size != b->st->st_size)
		return 0;
	if (compare->budget_bytes != UINT64_MAX) {
		if (size > compare->budget_bytes)
			return -EDQUOT;
		compare->budget_bytes -= size;
	}
	if (!compare->buffers)
		compare->buffers = malloc(2 * CHUNK);
	if (!compare->buffers)
		return -ENOMEM;
	fd_a = compare_open(a);
	if (fd_a < 0)
		return fd_a;
	fd_b = compare_open(b);
	if (fd_b < 0)
		return fd_b;
	return compare_bytes(compare, fd_a, fd_b);
}

int compare_links(const struct compare_side *a, const struct compare_side *b)
{
	char target_a[PATH_MAX], target_b[PATH_MAX];
	int r = stage_change_read_link(a->dir_fd, a->name, target_a, sizeof target_a);

	if (r >= 0)
		r = stage_change_read_link(b->dir_fd, b->name, target_b, sizeof target_b);
	return r < 0 ? r : str_equal(target_a, target_b);
}

/* One side's attributes: the way to the file, and the names, which few files have many of. */
struct attributes {
	char path[LINK_SIZE];
	char few[512];
	char *many;           /* owned; NULL: they are few */
	const char *names;
	ssize_t size;
};

static int list(struct attributes *attributes, const struct compare_side *side)
{
	int r = str_format(attributes->path, sizeof attributes->path, "/proc/self/fd/%d/%s", side->dir_fd, side->name);

	if (r < 0)
		return r;
	attributes->names = attributes->few;
	attributes->size = llistxattr(attributes->path, attributes->few, sizeof attributes->few);
	if (attributes->size < 0 && errno == ERANGE) {
		attributes->names = attributes->many = malloc(LIST_MAX);
		if (!attributes->many)
			return -ENOMEM;
		attributes->size = llistxattr(attributes->path, attributes->many, LIST_MAX);
	}
	if (attributes->size < 0 && errno == EOPNOTSUPP)
		attributes->size = 0;
	/* It is gone since it was looked at. */
	return attributes->size < 0 ? (errno == ENOENT ? -ESTALE : -errno) : 0;
}

static size_t count(const struct attributes *attributes, bool (*is_wanted)(const char *name))
{
	size_t found = 0;

	for (ssize_t at = 0; at < attributes->size; at += (ssize_t)strlen(attributes->names + at) + 1)
		found += is_wanted(attributes->names + at);
	return found;
}

/* values: room for two. What may not be read on one side is not known to differ. */
static bool is_same_value(const struct attributes *a, const struct attributes *b, const char *name, char *values)
{
	ssize_t size_a = lgetxattr(a->path, name, values, VALUE_MAX), size_b;

	if (size_a < 0 && errno == EACCES)
		return true;
	size_b = lgetxattr(b->path, name, values + VALUE_MAX, VALUE_MAX);
	if (size_b < 0 && errno == EACCES)
		return true;
	return size_a >= 0 && size_a == size_b && memcmp(values, values + VALUE_MAX, (size_t)size_a) == 0;
}

static int compare_lists(const struct attributes *a, const struct attributes *b, bool (*is_wanted)(const char *name))
{
	cleanup_free char *values = NULL;
	size_t wanted = count(a, is_wanted);

	if (wanted != count(b, is_wanted))
		return 0;
	if (!wanted)
		return 1;
	values = malloc(2 * VALUE_MAX);
	if (!values)
		return -ENOMEM;
	for (ssize_t at = 0; at < a->size; at += (ssize_t)strlen(a->names + at) + 1)
		if (is_wanted(a->names + at) && !is_same_value(a, b, a->names + at, values))
			return 0;
	return 1;
}

int compare_xattrs(const struct compare_side *a, const struct compare_side *b, bool (*is_wanted)(const char *name))
{
	struct attributes both[2];
	int r;

	both[0].many = both[1].many = NULL;
	r = list(&both[0], a);
	if (r == 0)
		r = list(&both[1], b);
	if (r == 0)
		r = compare_lists(&both[0], &both[1], is_wanted);
	free(both[0].many);
	free(both[1].many);
	return r;
}
