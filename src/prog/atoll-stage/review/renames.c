/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/review/renames.h"

#include <string.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "prog/atoll-stage/review/listing.h"
#include "prog/atoll-stage/review/renamed-directories.h"

/*
 * Theory of operation. Files of one size are read and compared by hash. Of several that hold the same bytes the one is
 * taken whose path ends in the most like way: the deleted ones stand in the order of hash and path read backwards, so
 * that it is a neighbour of where the added one would stand.
 */

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

enum { NEIGHBOURS = 16 };

static const struct stat *stat_of(const struct stage_change *change)
{
	return change->kind == STAGE_ADDED ? &change->staged : &change->host;
}

/* The candidates of one kind; none when there are too many. */
static int gather(struct listing *listing, enum stage_change_kind kind, struct ends *ends)
{
	ends->items = calloc(listing->count < RENAMES_FILES_MAX ? listing->count + 1 : RENAMES_FILES_MAX,
			     sizeof *ends->items);
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

	if (end->is_hashed)
		return;
	end->is_hashed = true;
	if (end->size > *budget)
		return;
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

/* Those of which the other side has one of the same size. */
static void hash_common(const struct opened *opened, struct ends *added, struct ends *deleted)
{
	uint64_t budget = RENAMES_BYTES_MAX;
	size_t k = 0;

	qsort(added->items, added->count, sizeof *added->items, compare_sizes);
	qsort(deleted->items, deleted->count, sizeof *deleted->items, compare_sizes);
	for (size_t i = 0; i < added->count; i++) {
		struct end *target = &added->items[i];

		while (k < deleted->count && deleted->items[k].size < target->size)
			k++;
		for (size_t j = k; j < deleted->count && deleted->items[j].size == target->size; j++) {
			if (deleted->items[j].is_hashed && j > k)
				break; /* so are the others of this size */
			hash_end(opened, &deleted->items[j], &budget);
		}
		if (k < deleted->count && deleted->items[k].size == target->size)
			hash_end(opened, target, &budget);
	}
}

/* How many bytes two paths have in common at their ends; *ret_order: how what is before compares. */
static size_t compare_backwards(const char *a, const char *b, int *ret_order)
{
	size_t x = strlen(a), y = strlen(b), common = 0;

	while (common < x && common < y && a[x - 1 - common] == b[y - 1 - common])
		common++;
	if (common == x || common == y)
		*ret_order = (x > y) - (x < y);
	else
		*ret_order = (unsigned char)a[x - 1 - common] < (unsigned char)b[y - 1 - common] ? -1 : 1;
	return common;
}

/* By what is known at all, by hash, and by path from its end. */
static int compare_ends(const void *a, const void *b)
{
	const struct end *x = a, *y = b;
	int order = x->is_read == y->is_read ? memcmp(&x->hash, &y->hash, sizeof x->hash) : x->is_read ? -1 : 1;

	if (order == 0)
		compare_backwards(x->listed->change->path, y->listed->change->path, &order);
	return order;
}

static bool is_pair(const struct end *added, const struct end *deleted)
{
	return added->is_read && deleted->is_read && !deleted->listed->is_rename_source &&
	       memcmp(&added->hash, &deleted->hash, sizeof added->hash) == 0;
}

/* Where target would stand among the deleted ones. */
static size_t find_place(const struct ends *deleted, const struct end *target)
{
	size_t low = 0, high = deleted->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_ends(&deleted->items[middle], target) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* NULL: none. Of those before and behind the nearest that is still free counts. */
static struct end *find_source(const struct ends *deleted, const struct end *target)
{
	size_t place = find_place(deleted, target), best_common = 0;
	struct end *best = NULL;
	size_t first = place < NEIGHBOURS ? 0 : place - NEIGHBOURS;

	for (size_t i = first; i < deleted->count && i < place + NEIGHBOURS; i++) {
		struct end *source = &deleted->items[i];
		size_t common;
		int order;

		if (!is_pair(target, source))
			continue;
		common = compare_backwards(target->listed->change->path, source->listed->change->path, &order);
		if (!best || common > best_common) {
			best = source;
			best_common = common;
		}
	}
	return best;
}

static void match(const struct opened *opened, struct ends *added, struct ends *deleted)
{
	hash_common(opened, added, deleted);
	qsort(deleted->items, deleted->count, sizeof *deleted->items, compare_ends);
	for (size_t i = 0; i < added->count; i++) {
		struct end *source = find_source(deleted, &added->items[i]);

		if (!source)
			continue;
		added->items[i].listed->renamed_from = source->listed->change;
		source->listed->is_rename_source = true;
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
	return r < 0 ? r : renamed_directories_find(listing);
}
