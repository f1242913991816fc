/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/review/listing.h"

#include <string.h>

#include "base/str.h"
#include "prog/atoll-stage/review/classifier.h"
#include "prog/atoll-stage/review/renames.h"

static int fail(struct err *err, int r, const char *tree)
{
	if (r == -E2BIG) {
		err_set(err, ERR_STATE, E2BIG, "stage", "there are too many staged changes in %s for a list", tree);
		err_hint(err, "name a path below it, or run atoll discard");
	} else {
		err_set(err, ERR_STATE, -r, "stage", "the staged changes in %s cannot be read: %s", tree, strerror(-r));
	}
	return r;
}

/* The part of path below the tree; "" where the tree is at or below path; NULL where they have nothing in common. */
static const char *within(const char *tree, const char *path)
{
	size_t length = strlen(tree);

	if (path_is_below(tree, path))
		return "";
	if (!path_is_below(path, tree))
		return NULL;
	return length == 1 ? path + 1 : path + length + 1;
}

/* A path lies in the innermost tree that has it: trees may be mounted in one another. */
static bool is_innermost(const struct opened *opened, size_t tree, const char *path)
{
	for (size_t i = 0; i < opened->record.tree_count; i++)
		if (i != tree && path_is_below(opened_tree(opened, i), opened_tree(opened, tree)) &&
		    path_is_below(path, opened_tree(opened, i)))
			return false;
	return true;
}

static int check_paths(const struct opened *opened, char *const *paths, size_t count, struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		bool found = false;

		for (size_t tree = 0; tree < opened->record.tree_count && !found; tree++)
			found = within(opened_tree(opened, tree), paths[i]) != NULL;
		if (!found) {
			err_set(err, ERR_USAGE, ENOENT, "stage", "%s is not in a staged tree", paths[i]);
			err_hint(err, "the first staged tree is %s", opened_first_tree(opened));
			return -ENOENT;
		}
	}
	return 0;
}

static int load_tree(struct listing *listing, struct classifier *classifier, size_t tree, char *const *paths,
		     size_t path_count)
{
	const struct opened *opened = listing->opened;
	struct stage_change_options options;
	cleanup_free const char **wanted = calloc(path_count + 1, sizeof *wanted);
	size_t count = 0;
	int r = wanted ? classifier_begin(classifier, tree, &options) : -ENOMEM;

	if (r < 0)
		return r;
	for (size_t i = 0; i < path_count; i++) {
		const char *rest = within(opened_tree(opened, tree), paths[i]);

		if (rest && (!*rest || is_innermost(opened, tree, paths[i])))
			wanted[count++] = rest;
	}
	if (path_count && !count)
		return 0;
	options.paths = wanted;
	options.path_count = count;
	return stage_changes_load(&listing->changes, &opened->stacks[tree], &options);
}

static bool lies_in(const struct stage_change *change, const struct stage_change *directory)
{
	size_t length = strlen(directory->path);

	return change->tree == directory->tree && strncmp(change->path, directory->path, length) == 0 &&
	       (change->path[length] == '/' || !length);
}

/* Files tell about directories that were made for them or went with them. */
static bool is_implied(const struct stage_changes *changes, size_t i)
{
	const struct stage_change *change = &changes->items[i];

	bool is_told = change->state == STAGE_CLEAN || change->state == STAGE_SYSTEM;

	if (!is_told || change->is_flagged || !stage_change_is_directory(change))
		return false;
	if (change->kind == STAGE_ADDED)
		return i + 1 < changes->count && lies_in(&changes->items[i + 1], change);
	return change->kind == STAGE_DELETED && i > 0 && lies_in(&changes->items[i - 1], change);
}

static enum listing_group group_of(const struct stage_change *change)
{
	if (change->state == STAGE_REFUSED)
		return GROUP_REFUSED;
	if (change->state == STAGE_SYSTEM)
		return GROUP_SYSTEM;
	if (change->is_flagged && !change->is_settled)
		return GROUP_FLAGGED;
	if (change->state == STAGE_CONFLICT)
		return change->is_settled ? GROUP_SETTLED : GROUP_CONFLICT;
	return GROUP_CLEAN;
}

/* Group by group, each in the order of the walk. */
static int arrange(struct listing *listing)
{
	const struct stage_changes *changes = &listing->changes;

	listing->items = calloc(changes->count + 1, sizeof *listing->items);
	if (!listing->items)
		return -ENOMEM;
	for (unsigned group = 0; group < GROUP_COUNT; group++) {
		for (size_t i = 0; i < changes->count; i++) {
			if (group_of(&changes->items[i]) != group)
				continue;
			listing->items[listing->count++] = (struct listed){
				.change = &changes->items[i], .group = group, .is_implied = is_implied(changes, i),
			};
		}
	}
	for (size_t i = 0; i < changes->count; i++)
		stage_counts_add(&listing->counts, &changes->items[i]);
	return 0;
}

int listing_load(struct listing *ret_listing, const struct opened *opened, char *const *paths, size_t path_count,
		 struct err *err)
{
	struct listing listing = { .opened = opened };
	struct classifier classifier;
	int r = check_paths(opened, paths, path_count, err);

	if (r == 0)
		r = classifier_init(&classifier, opened, err);
	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < opened->record.tree_count; i++) {
		r = load_tree(&listing, &classifier, i, paths, path_count);
		if (r < 0)
			fail(err, r, opened_tree(opened, i));
	}
	if (r == 0) {
		r = arrange(&listing);
		if (r == 0)
			r = renames_find(&listing);
		if (r < 0)
			err_set(err, ERR_INTERNAL, -r, "stage", "%s", strerror(-r));
	}
	classifier_done(&classifier);
	if (r < 0) {
		listing_done(&listing);
		return r;
	}
	*ret_listing = listing;
	return 0;
}

void listing_done(struct listing *listing)
{
	free(listing->items);
	stage_changes_done(&listing->changes);
	listing->items = NULL;
}

void listing_put_path(const struct opened *opened, const struct stage_change *change, struct buf *out)
{
	const char *tree = opened_tree(opened, change->tree), *base = opened->session->base;
	size_t start = out->size;

	if (base && path_is_below(tree, base))
		/* The part of the tree below the base; a base of "/" takes only the slash. */
		buf_put_text(out, tree + strlen(base) + (base[1] && tree[strlen(base)] ? 1 : 0));
	else
		buf_put_text(out, tree);
	if (*change->path) {
		if (out->size > start && out->bytes[out->size - 1] != '/')
			buf_put_char(out, '/');
		buf_put_text(out, change->path);
	}
	if (out->size == start)
		buf_put_char(out, '.');
}
