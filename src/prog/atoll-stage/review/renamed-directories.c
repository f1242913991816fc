/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/review/renamed-directories.h"

#include <string.h>

#include "base/str.h"
#include "prog/atoll-stage/review/listing.h"

/* A file that was renamed with a directory above it. */
struct pair {
	struct listed *target;
	size_t from_length, to_length; /* of the paths of both directories */
};

struct search {
	struct listing *listing;
	struct listed **removed;     /* owned, both: by kind (directories first), tree and path */
	struct listed **made;
	size_t removed_count, made_count;
	struct pair *pairs;          /* owned */
	size_t pair_count;
};

/* ---- sorted changes ---- */

static int compare_key(bool a_is_directory, const struct stage_change *a, bool b_is_directory, size_t tree,
		       const char *path, size_t length)
{
	int order;

	if (a_is_directory != b_is_directory)
		return a_is_directory ? -1 : 1;
	if (a->tree != tree)
		return a->tree < tree ? -1 : 1;
	order = strncmp(a->path, path, length);
	return order ? order : a->path[length] != 0;
}

static int compare_listed(const void *a, const void *b)
{
	const struct stage_change *x = (*(struct listed *const *)a)->change, *y = (*(struct listed *const *)b)->change;

	return compare_key(stage_change_is_directory(x), x, stage_change_is_directory(y), y->tree, y->path,
			   strlen(y->path));
}

/* The first that is not before this path. */
static size_t find_first(struct listed *const *sorted, size_t count, bool is_directory, size_t tree, const char *path,
			 size_t length)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct stage_change *change = sorted[middle]->change;

		if (compare_key(stage_change_is_directory(change), change, is_directory, tree, path, length) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct listed *find_directory(struct listed *const *sorted, size_t count, size_t tree, const char *path,
				     size_t length)
{
	size_t at = find_first(sorted, count, true, tree, path, length);

	return at < count && compare_key(stage_change_is_directory(sorted[at]->change), sorted[at]->change, true, tree,
					 path, length) == 0 ? sorted[at] : NULL;
}

static int sort_changes(struct search *search)
{
	struct listing *listing = search->listing;

	search->removed = calloc(listing->count + 1, sizeof *search->removed);
	search->made = calloc(listing->count + 1, sizeof *search->made);
	search->pairs = calloc(listing->count + 1, sizeof *search->pairs);
	if (!search->removed || !search->made || !search->pairs)
		return -ENOMEM;
	for (size_t i = 0; i < listing->count; i++) {
		struct listed *listed = &listing->items[i];

		if (listed->change->state != STAGE_CLEAN || listed->change->is_flagged)
			continue;
		if (listed->change->kind == STAGE_DELETED)
			search->removed[search->removed_count++] = listed;
		else if (listed->change->kind == STAGE_ADDED && stage_change_is_directory(listed->change))
			search->made[search->made_count++] = listed;
	}
	qsort(search->removed, search->removed_count, sizeof *search->removed, compare_listed);
	qsort(search->made, search->made_count, sizeof *search->made, compare_listed);
	return 0;
}

/* ---- pairs ---- */

/* Takes the names off that both paths end in. False: the file itself has another name, or it is in the root. */
static bool find_directories(const char *from, const char *to, size_t *ret_from, size_t *ret_to)
{
	size_t x = strlen(from), y = strlen(to), slash_x = 0, slash_y = 0;

	while (x && y && from[x - 1] == to[y - 1]) {
		x--;
		y--;
		if (from[x] == '/') {
			slash_x = x;
			slash_y = y;
		}
	}
	*ret_from = slash_x;
	*ret_to = slash_y;
	return slash_x && slash_y;
}

static void gather_pairs(struct search *search)
{
	for (size_t i = 0; i < search->listing->count; i++) {
		struct listed *listed = &search->listing->items[i];
		const struct stage_change *from = listed->renamed_from;
		struct pair pair = { .target = listed };

		if (!from || from->is_flagged || listed->change->is_flagged || from->tree != listed->change->tree ||
		    !find_directories(from->path, listed->change->path, &pair.from_length, &pair.to_length))
			continue;
		search->pairs[search->pair_count++] = pair;
	}
}

static int compare_part(const char *a, size_t a_length, const char *b, size_t b_length)
{
	int order = strncmp(a, b, a_length < b_length ? a_length : b_length);

	return order ? order : (a_length > b_length) - (a_length < b_length);
}

static int compare_pairs(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;
	const struct stage_change *from_x = x->target->renamed_from, *from_y = y->target->renamed_from;
	int order = from_x->tree == from_y->tree ? 0 : from_x->tree < from_y->tree ? -1 : 1;

	if (order == 0)
		order = compare_part(from_x->path, x->from_length, from_y->path, y->from_length);
	if (order == 0)
		order = compare_part(x->target->change->path, x->to_length, y->target->change->path, y->to_length);
	return order;
}

/* ---- directories ---- */

/* Those of the removed that lie below a directory, of one kind: from *ret_first. */
static size_t count_below(const struct search *search, bool is_directory, const struct stage_change *directory,
			  size_t *ret_first)
{
	cleanup_free char *below = str_printf("%s/", directory->path);
	size_t length = below ? strlen(below) : 0, end;

	*ret_first = 0;
	if (!below)
		return 0;
	*ret_first = find_first(search->removed, search->removed_count, is_directory, directory->tree, below, length);
	for (end = *ret_first; end < search->removed_count; end++) {
		const struct stage_change *change = search->removed[end]->change;

		if (stage_change_is_directory(change) != is_directory || change->tree != directory->tree ||
		    strncmp(change->path, below, length) != 0)
			break;
	}
	return end - *ret_first;
}

/* Directories below that both have are told by the rename. */
static void take_directories(struct search *search, const struct listed *removed, const struct listed *made)
{
	size_t first, count = count_below(search, true, removed->change, &first);
	size_t length = strlen(removed->change->path);

	for (size_t i = first; i < first + count; i++) {
		const struct stage_change *change = search->removed[i]->change;
		cleanup_free char *path = str_printf("%s%s", made->change->path, change->path + length);
		struct listed *other = path ? find_directory(search->made, search->made_count, change->tree, path,
							     strlen(path)) : NULL;

		if (!other)
			continue;
		search->removed[i]->is_rename_source = true;
		other->is_within_rename = true;
	}
}

/* Pairs of the same two directories. */
static void judge_pairs(struct search *search, const struct pair *pairs, size_t count)
{
	const struct stage_change *from = pairs[0].target->renamed_from, *to = pairs[0].target->change;
	struct listed *removed = find_directory(search->removed, search->removed_count, from->tree, from->path,
						pairs[0].from_length);
	struct listed *made = find_directory(search->made, search->made_count, to->tree, to->path, pairs[0].to_length);
	size_t first;

	if (!removed || !made || removed->is_rename_source || made->renamed_from ||
	    count * 2 < count_below(search, false, removed->change, &first))
		return;
	made->renamed_from = removed->change;
	made->renamed_files = count;
	made->is_implied = false;
	removed->is_rename_source = true;
	for (size_t i = 0; i < count; i++)
		pairs[i].target->is_within_rename = true;
	take_directories(search, removed, made);
}

static void search_done(struct search *search)
{
	free(search->removed);
	free(search->made);
	free(search->pairs);
}

int renamed_directories_find(struct listing *listing)
{
	struct search search = { .listing = listing };
	int r = sort_changes(&search);

	if (r == 0) {
		gather_pairs(&search);
		qsort(search.pairs, search.pair_count, sizeof *search.pairs, compare_pairs);
	}
	for (size_t i = 0, end; i < search.pair_count; i = end) {
		for (end = i + 1; end < search.pair_count; end++)
			if (compare_pairs(&search.pairs[i], &search.pairs[end]) != 0)
				break;
		judge_pairs(&search, &search.pairs[i], end - i);
	}
	search_done(&search);
	return r;
}
