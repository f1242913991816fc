/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/review/text.h"

#include <limits.h>
#include <string.h>

enum { BINARY_WINDOW = 8000 };

void text_done(struct text *text)
{
	free(text->bytes);
	*text = (struct text){ .kind = TEXT_ABSENT };
}

static int load_link(int root_fd, const char *path, struct text *text)
{
	const char *name;
	cleanup_fd int dir_fd = stage_open_parent(root_fd, path, &name);
	char target[PATH_MAX];
	int size = dir_fd < 0 ? dir_fd : stage_change_read_link(dir_fd, name, target, sizeof target);

	text->kind = TEXT_LOST;
	if (size < 0)
		return 0;
	text->bytes = strndup(target, (size_t)size);
	if (!text->bytes)
		return -ENOMEM;
	text->kind = TEXT_LINES;
	text->size = (size_t)size;
	return 0;
}

static int load_file(int fd, size_t size, size_t max, struct text *text)
{
	size_t at = 0;

	text->kind = size > max ? TEXT_LARGE : TEXT_LOST;
	if (size > max)
		return 0;
	text->bytes = malloc(size + 1);
	if (!text->bytes)
		return -ENOMEM;
	while (at < size) {
		ssize_t n = pread(fd, text->bytes + at, size - at, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return 0;
		at += (size_t)n;
	}
	text->size = size;
	text->kind = memchr(text->bytes, 0, size < BINARY_WINDOW ? size : BINARY_WINDOW) ? TEXT_BINARY : TEXT_LINES;
	return 0;
}

int text_load(const struct opened *opened, const struct stage_change *change, enum text_side side, size_t max,
	      struct text *ret_text)
{
	const struct stage_stack *stack = &opened->stacks[change->tree];
	const struct stat *st = side == SIDE_HOST ? &change->host : &change->staged;
	struct text text = { .kind = TEXT_ABSENT };
	cleanup_fd int fd = FD_NONE;
	int r = 0;

	if (!(side == SIDE_HOST ? change->host_exists : change->staged_exists)) {
		*ret_text = text;
		return 0;
	}
	if (S_ISLNK(st->st_mode)) {
		r = load_link(side == SIDE_HOST ? stack->host_fd : stack->layers[change->layer], change->path, &text);
	} else if (S_ISREG(st->st_mode)) {
		fd = side == SIDE_HOST ? stage_change_open_host(stack, change) : stage_change_open(stack, change);
		text.kind = TEXT_LOST;
		if (fd >= 0)
			r = load_file(fd, (size_t)st->st_size, max, &text);
	}
	if (r < 0 || (text.kind != TEXT_LINES && text.kind != TEXT_BINARY)) {
		free(text.bytes);
		text.bytes = NULL;
	}
	*ret_text = text;
	return r;
}
