/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/record/names.h"

#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/str.h"

enum { BATCH = 32 << 10 };

/* What getdents64(2) writes; the libraries differ in how they call it. */
struct entry {
	uint64_t inode;
	int64_t next;
	uint16_t size;
	uint8_t type;
	char name[];
};

void stage_names_done(struct stage_names *names)
{
	free(names->items);
	free(names->text);
	*names = (struct stage_names){ 0 };
}

/* At least size bytes more in *array of *capacity things of this size. */
static int grow(void **array, size_t *capacity, size_t needed, size_t item_size)
{
	size_t larger = *capacity ? *capacity : 16;
	void *moved;

	while (larger < needed)
		larger *= 2;
	if (larger == *capacity)
		return 0;
	moved = reallocarray(*array, larger, item_size);
	if (!moved)
		return -ENOMEM;
	*array = moved;
	*capacity = larger;
	return 0;
}

static int add(struct stage_names *names, const char *name, const struct stage_names_source *from)
{
	size_t prefix = from->prefix && str_has_prefix(name, from->prefix) ? strlen(from->prefix) : 0;

	size_t size = strlen(name + prefix) + 1;
	void *items = names->items, *text = names->text;
	int r = grow(&items, &names->capacity, names->count + 1, sizeof *names->items);

	names->items = items;
	if (r == 0)
		r = names->size + size > UINT32_MAX ? -E2BIG :
			grow(&text, &names->text_capacity, names->size + size, 1);
	names->text = text;
	if (r < 0)
		return r;
	memcpy(names->text + names->size, name + prefix, size);
	names->items[names->count++] = (struct stage_name){ (uint32_t)names->size, from->source, prefix > 0 };
	names->size += size;
	return 0;
}

static int add_batch(struct stage_names *names, const char *batch, long size, const struct stage_names_source *from,
		     size_t max)
{
	for (long at = 0; at < size;) {
		const struct entry *entry = (const struct entry *)(batch + at);
		bool is_dots = entry->name[0] == '.' &&
			       (!entry->name[1] || (entry->name[1] == '.' && !entry->name[2]));
		int r = 0;

		if (!is_dots && !(from->ignored && strcmp(entry->name, from->ignored) == 0))
			r = names->count >= max ? -E2BIG : add(names, entry->name, from);
		if (r < 0)
			return r;
		at += entry->size;
	}
	return 0;
}

int stage_names_read(struct stage_names *names, const struct stage_names_source *from, size_t max)
{
	char batch[BATCH] __attribute__((aligned(8)));

	/* The fd may have been read before; the root of a layer is. */
	if (lseek(from->dir_fd, 0, SEEK_SET) < 0)
		return -errno;
	for (;;) {
		long size = syscall(SYS_getdents64, from->dir_fd, batch, sizeof batch);
		int r;

		if (size == 0)
			return 0;
		if (size < 0)
			return -errno;
		r = add_batch(names, batch, size, from, max);
		if (r < 0)
			return r;
	}
}

/*
 * Heap sort on (name, source, whiteouts first): no recursion and no bad input, which a sandbox would find, and no
 * qsort_r(), which the C libraries do not share.
 */
static int compare(const struct stage_names *names, const struct stage_name *a, const struct stage_name *b)
{
	int order = strcmp(names->text + a->offset, names->text + b->offset);

	if (order || a->source != b->source)
		return order ? order : a->source < b->source ? -1 : 1;
	/* Of both in one layer the whiteout counts, as for who wrote it. */
	return (int)b->is_whiteout - (int)a->is_whiteout;
}

static void sift(struct stage_names *names, size_t root, size_t end)
{
	struct stage_name moved = names->items[root];

	for (size_t child; (child = 2 * root + 1) < end; root = child) {
		if (child + 1 < end && compare(names, &names->items[child], &names->items[child + 1]) < 0)
			child++;
		if (compare(names, &moved, &names->items[child]) >= 0)
			break;
		names->items[root] = names->items[child];
	}
	names->items[root] = moved;
}

void stage_names_sort(struct stage_names *names)
{
	void *smaller;

	for (size_t i = names->count / 2; i-- > 0;)
		sift(names, i, names->count);
	for (size_t end = names->count; end-- > 1;) {
		struct stage_name last = names->items[end];

		names->items[end] = names->items[0];
		names->items[0] = last;
		sift(names, 0, end);
	}
	/* A deep tree of short directories is kept level by level. */
	smaller = names->count ? reallocarray(names->items, names->count, sizeof *names->items) : NULL;
	if (smaller) {
		names->items = smaller;
		names->capacity = names->count;
	}
}
