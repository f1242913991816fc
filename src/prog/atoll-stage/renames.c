/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/renames.h"

#include <string.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "prog/atoll-stage/listing.h"

/* A file that may be one end of a rename. */
struct end {
	struct listed *listed;
	uint64_t size;
	struct hash hash;
	bool is_hashed, is_read;   /* tried; and known */
};

struct ends {
	struct end *items;
	size_t count;
};

static const struct stat *stat_of(const struct stage_change *change)
{
	return change->kind == STAGE_ADDED ? &change->staged : &change->host;
}

/* The candidates of one kind; none when there are too many. */
static int gather(struct listing *listing, enum stage_change_kind kind, struct ends *ends)
{
	ends->items = calloc(RENAMES_FILES_MAX, sizeof *ends->items);
	if (!ends->items)
		return -ENOMEM;
	for (size_t i = 0; i < listing->count; i++) {
		const struct stage_change *change = listing->items[i].change;

		if (change->kind != kind || change->state != STAGE_CLEAN || !S_ISREG(stat_of(change)->st_mode) ||
		    !stat_of(change)->st_size)
			continue;
		if (ends->count == RENAMES_FILES_MAX) {
			ends->count = 0;
			return 0;
		}
		ends->items[ends->count++] = (struct end){
			.listed = &listing->items[i], .size = (uint64_t)stat_of(change)->st_size,
		};
	}
	return 0;
}

static int compare_sizes(const void *a, const void *b)
{
	const struct end *x = a, *y = b;

	return (x->size > y->size) - (x->size < y->size);
}

static void hash_end(const struct opened *opened, struct end *end, uint64_t *budget)
{
	const struct stage_change *change = end->listed->change;
	const struct stage_stack *stack = &opened->stacks[change->tree];
	cleanup_fd int fd = FD_NONE;
	void *bytes;

	if (end->is_hashed || end->size > *budget)
		return;
	end->is_hashed = true;
	*budget -= end->size;
	fd = change->kind == STAGE_ADDED ? stage_change_open(stack, change) : stage_change_open_host(stack, change);
	/* Read, not mapped: a file that shrinks under a mapping kills the reader. */
	bytes = fd < 0 ? NULL : malloc(end->size);
	if (bytes && pread(fd, bytes, end->size, 0) == (ssize_t)end->size) {
		hash_bytes(&end->hash, bytes, end->size);
		end->is_read = true;
	}
	free(bytes);
}

static bool is_pair(const struct opened *opened, struct end *added, struct end *deleted, uint64_t *budget)
{
	if (deleted->listed->is_rename_source)
		return false;
	hash_end(opened, added, budget);
	hash_end(opened, deleted, budget);
	return added->is_read && deleted->is_read &&
	       memcmp(&added->hash, &deleted->hash, sizeof added->hash) == 0;
}

/* Both lists by size: only files of the same size are read. */
static void match(const struct opened *opened, struct ends *added, struct ends *deleted)
{
	uint64_t budget = RENAMES_BYTES_MAX;
	size_t first = 0;

	qsort(added->items, added->count, sizeof *added->items, compare_sizes);
	qsort(deleted->items, deleted->count, sizeof *deleted->items, compare_sizes);
	for (size_t i = 0; i < added->count; i++) {
		struct end *target = &added->items[i];

		while (first < deleted->count && deleted->items[first].size < target->size)
			first++;
		for (size_t k = first; k < deleted->count && deleted->items[k].size == target->size; k++) {
			if (!is_pair(opened, target, &deleted->items[k], &budget))
				continue;
			target->listed->renamed_from = deleted->items[k].listed->change;
			deleted->items[k].listed->is_rename_source = true;
			break;
		}
	}
}

int renames_find(struct listing *listing)
{
	struct ends added = { 0 }, deleted = { 0 };
	int r = gather(listing, STAGE_ADDED, &added);

	if (r == 0)
		r = gather(listing, STAGE_DELETED, &deleted);
	if (r == 0 && added.count && deleted.count)
		match(listing->opened, &added, &deleted);
	free(added.items);
	free(deleted.items);
	return r;
}
