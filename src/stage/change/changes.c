/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "os/path.h"
#include "stage/layer/attributes.h"
#include "stage/change/change.h"

const char *const stage_change_kind_names[STAGE_CHANGE_KIND_COUNT] = {
	[STAGE_ADDED] = "added",
	[STAGE_MODIFIED] = "modified",
	[STAGE_DELETED] = "deleted",
};

const char *const stage_change_state_names[STAGE_CHANGE_STATE_COUNT] = {
	[STAGE_CLEAN] = "clean",
	[STAGE_CONFLICT] = "conflict",
	[STAGE_REFUSED] = "refused",
	[STAGE_SYSTEM] = "system",
};

const char *const stage_reason_names[STAGE_REASON_COUNT] = {
	[STAGE_REASON_NONE] = "none",         [STAGE_HOST_CHANGED] = "host-changed",
	[STAGE_HOST_DELETED] = "host-deleted", [STAGE_HOST_ADDED] = "host-added",
	[STAGE_BELOW] = "below",              [STAGE_ABOVE] = "above",
	[STAGE_FIFO] = "fifo",                [STAGE_SOCKET] = "socket",
	[STAGE_DEVICE] = "device",            [STAGE_FORGED] = "forged",
	[STAGE_MASKED] = "masked",            [STAGE_MOUNT] = "mount",
	[STAGE_RESERVED] = "reserved",
	[STAGE_TOO_DEEP] = "too-deep",        [STAGE_UNREADABLE] = "unreadable",
	[STAGE_RACED] = "raced",
};

const char *const stage_reason_texts[STAGE_REASON_COUNT] = {
	[STAGE_REASON_NONE] = "",
	[STAGE_HOST_CHANGED] = "changed on the host since the run began",
	[STAGE_HOST_DELETED] = "deleted on the host since the run began",
	[STAGE_HOST_ADDED] = "added or changed on the host since the run began",
	[STAGE_BELOW] = "something below it has to stay",
	[STAGE_ABOVE] = "the directory it is in cannot be made",
	[STAGE_FIFO] = "a FIFO is never applied",
	[STAGE_SOCKET] = "a socket is never applied",
	[STAGE_DEVICE] = "a device is never applied",
	[STAGE_FORGED] = "it carries forged attributes of the overlay",
	[STAGE_MASKED] = "the policy masks this name",
	[STAGE_MOUNT] = "another file system is mounted there",
	[STAGE_RESERVED] = "apply uses names like this one",
	[STAGE_TOO_DEEP] = "it lies too deep",
	[STAGE_UNREADABLE] = "it cannot be read",
	[STAGE_RACED] = "it changed while it was read",
};

/* Changes as a list: the paths lie in blocks, because they may be long and many. */

enum { BLOCK_SIZE = 256 << 10 };

struct stage_path_block {
	struct stage_path_block *next;
	size_t size, capacity;
	char text[];
};

static char *keep_path(struct stage_changes *changes, const char *path)
{
	struct stage_path_block *block = changes->paths;
	size_t size = strlen(path) + 1;
	char *kept;

	if (!block || block->capacity - block->size < size) {
		size_t capacity = size > BLOCK_SIZE ? size : BLOCK_SIZE;

		block = malloc(sizeof *block + capacity);
		if (!block)
			return NULL;
		*block = (struct stage_path_block){ .next = changes->paths, .capacity = capacity };
		changes->paths = block;
	}
	kept = block->text + block->size;
	memcpy(kept, path, size);
	block->size += size;
	return kept;
}

static int add_change(void *context, const struct stage_change *change)
{
	struct stage_changes *changes = context;
	struct stage_change *kept;

	if (changes->count >= STAGE_CHANGES_MAX)
		return -E2BIG;
	if (changes->count == changes->capacity) {
		size_t capacity = changes->capacity ? 2 * changes->capacity : 64;
		struct stage_change *items = reallocarray(changes->items, capacity, sizeof *items);

		if (!items)
			return -ENOMEM;
		changes->items = items;
		changes->capacity = capacity;
	}
	kept = &changes->items[changes->count];
	*kept = *change;
	kept->staged_dir_fd = FD_NONE;
	kept->host_dir_fd = FD_NONE;
	kept->path = keep_path(changes, change->path);
	if (!kept->path)
		return -ENOMEM;
	changes->count++;
	return 0;
}

int stage_changes_load(struct stage_changes *changes, const struct stage_stack *stack,
		       const struct stage_change_options *options)
{
	return stage_changes_walk(stack, options, add_change, changes);
}

void stage_changes_done(struct stage_changes *changes)
{
	while (changes->paths) {
		struct stage_path_block *next = changes->paths->next;

		free(changes->paths);
		changes->paths = next;
	}
	free(changes->items);
	*changes = (struct stage_changes){ 0 };
}

static int open_checked(int root_fd, const char *path, const struct stat *expected)
{
	uint64_t flags = O_RDONLY | (S_ISDIR(expected->st_mode) ? O_DIRECTORY : O_NONBLOCK | O_NOCTTY);
	cleanup_fd int fd = FD_NONE;
	struct stat st;

	if (!S_ISDIR(expected->st_mode) && !S_ISREG(expected->st_mode))
		return -EINVAL;
	fd = stage_open_beneath(root_fd, path, flags, 0);
	if (fd < 0)
		return fd == -ENOENT || fd == -ELOOP || fd == -ENOTDIR ? -ESTALE : fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	return stage_stat_is_same(&st, expected) ? take_fd(&fd) : -ESTALE;
}

int stage_change_open(const struct stage_stack *stack, const struct stage_change *change)
{
	if (!change->staged_exists || change->layer >= stack->count)
		return -EINVAL;
	return open_checked(stack->layers[change->layer], change->path, &change->staged);
}

int stage_change_open_host(const struct stage_stack *stack, const struct stage_change *change)
{
	return change->host_exists ? open_checked(stack->host_fd, change->path, &change->host) : -EINVAL;
}

int stage_change_has_same_attributes(int a_fd, int b_fd)
{
	return attributes_are_same(a_fd, b_fd, attributes_is_content);
}

int stage_change_read_link(int dir_fd, const char *name, char *out, size_t size)
{
	ssize_t length = readlinkat(dir_fd, name, out, size);

	if (length < 0)
		return errno == EINVAL || errno == ENOENT ? -ESTALE : -errno;
	if ((size_t)length >= size)
		return -ENAMETOOLONG;
	out[length] = 0;
	return (int)length;
}

bool stage_stat_is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && (a->st_mode & S_IFMT) == (b->st_mode & S_IFMT) &&
	       a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}
