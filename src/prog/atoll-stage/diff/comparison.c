/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/diff/comparison.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "policy/order.h"
#include "prog/atoll-stage/review/classifier.h"
#include "prog/atoll-stage/review/text.h"

/* One change of one state under its absolute path. */
struct side {
	char *path;                          /* owned */
	const struct stage_change *change;
	const struct opened *opened;
};

struct sides {
	struct side *items;
	size_t count;
};

static void sides_done(struct sides *sides)
{
	for (size_t i = 0; i < sides->count; i++)
		free(sides->items[i].path);
	free(sides->items);
}
#define cleanup_sides __attribute__((cleanup(sides_done)))

static int by_path(const void *a, const void *b)
{
	const struct side *x = a, *y = b;

	return path_compare(x->path, y->path);
}

static char *absolute(const char *tree, const char *path)
{
	size_t size = strlen(tree) + strlen(path) + 2;
	char *out = malloc(size);

	if (out && str_format(out, size, "%s%s%s", tree, *path && tree[1] ? "/" : "", path) < 0) {
		free(out);
		return NULL;
	}
	return out;
}

/* Nothing but the time of a file or link, which an apply carries. */
static bool is_time_alone(const struct stage_change *change)
{
	return change->kind == STAGE_MODIFIED && change->state != STAGE_REFUSED &&
	       change->differs == STAGE_DIFFERS_MTIME;
}

static int load_sides(struct compared *state, const struct comparison_options *options, struct sides *sides,
		      struct err *err)
{
	const struct opened *opened = &state->opened;
	struct classifier classifier;
	int r = classifier_init(&classifier, opened, err);

	if (r < 0)
		return r;
	for (size_t tree = 0; r == 0 && tree < opened->record.tree_count; tree++) {
		struct stage_change_options judged;

		r = classifier_begin(&classifier, tree, &judged);
		judged.exact_content = true;
		if (r == 0)
			r = stage_changes_load(&state->changes, &opened->stacks[tree], &judged);
	}
	classifier_done(&classifier);
	if (r == 0)
		sides->items = calloc(state->changes.count + 1, sizeof *sides->items);
	if (r == 0 && !sides->items)
		r = -ENOMEM;
	for (size_t i = 0; r == 0 && i < state->changes.count; i++) {
		const struct stage_change *change = &state->changes.items[i];
		struct side *side = &sides->items[sides->count];

		if (is_time_alone(change) && !options->has_times)
			continue;
		*side = (struct side){ .change = change, .opened = opened };
		side->path = absolute(opened_tree(opened, change->tree), change->path);
		if (!side->path)
			r = -ENOMEM;
		else
			sides->count++;
	}
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "stage", "the staged changes of session %s cannot be read: %s",
			       opened->record.session, strerror(-r));
	qsort(sides->items, sides->count, sizeof *sides->items, by_path);
	return 0;
}

/* ---- whether two changes are the same ---- */

/* 1, 0; what cannot be read is not the same. */
static int has_same_bytes(int a_fd, int b_fd)
{
	enum { CHUNK = 64 << 10 };
	cleanup_free char *a = malloc(CHUNK), *b = malloc(CHUNK);
	off_t at = 0;

	if (!a || !b)
		return -ENOMEM;
	for (;;) {
		ssize_t n = pread(a_fd, a, CHUNK, at), m = pread(b_fd, b, CHUNK, at);

		if (n < 0 || n != m || memcmp(a, b, (size_t)n) != 0)
			return 0;
		if (n == 0)
			return 1;
		at += n;
	}
}

static int is_same_opened(const struct side *a, const struct side *b)
{
	cleanup_fd int a_fd = stage_change_open(&a->opened->stacks[a->change->tree], a->change);
	cleanup_fd int b_fd = stage_change_open(&b->opened->stacks[b->change->tree], b->change);

	if (a_fd < 0 || b_fd < 0 || stage_change_has_same_attributes(a_fd, b_fd) != 1)
		return 0;
	return S_ISREG(a->change->staged.st_mode) ? has_same_bytes(a_fd, b_fd) : 1;
}

static int is_same_link(const struct side *a, const struct side *b)
{
	struct text texts[2] = { { .kind = TEXT_ABSENT }, { .kind = TEXT_ABSENT } };
	int r = text_load(a->opened, a->change, SIDE_STAGED, PATH_MAX, &texts[0]);

	if (r == 0)
		r = text_load(b->opened, b->change, SIDE_STAGED, PATH_MAX, &texts[1]);
	if (r == 0)
		r = texts[0].kind == TEXT_LINES && texts[1].kind == TEXT_LINES && texts[0].size == texts[1].size &&
		    memcmp(texts[0].bytes, texts[1].bytes, texts[0].size) == 0;
	text_done(&texts[0]);
	text_done(&texts[1]);
	return r;
}

static int is_same(const struct side *a, const struct side *b)
{
	const struct stat *x = &a->change->staged, *y = &b->change->staged;

	if (!a->change->staged_exists || !b->change->staged_exists)
		return a->change->staged_exists == b->change->staged_exists;
	if (x->st_dev == y->st_dev && x->st_ino == y->st_ino && stage_stat_is_same(x, y))
		return 1;
	if (x->st_mode != y->st_mode)
		return 0;
	if (S_ISREG(x->st_mode) && x->st_size != y->st_size)
		return 0;
	if (S_ISREG(x->st_mode) || S_ISDIR(x->st_mode))
		return is_same_opened(a, b);
	return S_ISLNK(x->st_mode) ? is_same_link(a, b) : 1;
}

/* Of two that are the same but for that. */
static bool has_same_time(const struct side *a, const struct side *b)
{
	const struct stat *x = &a->change->staged, *y = &b->change->staged;

	return !a->change->staged_exists || S_ISDIR(x->st_mode) ||
	       (x->st_mtim.tv_sec == y->st_mtim.tv_sec && x->st_mtim.tv_nsec == y->st_mtim.tv_nsec);
}

/* ---- the list ---- */

static enum stage_change_kind kind_of(const struct side *before, const struct side *now)
{
	/* What the first state did, undone. */
	static const enum stage_change_kind back[STAGE_CHANGE_KIND_COUNT] = {
		[STAGE_ADDED] = STAGE_DELETED, [STAGE_MODIFIED] = STAGE_MODIFIED, [STAGE_DELETED] = STAGE_ADDED,
	};

	if (!before)
		return now->change->kind;
	if (!now)
		return back[before->change->kind];
	if (!before->change->staged_exists)
		return STAGE_ADDED;
	return now->change->staged_exists ? STAGE_MODIFIED : STAGE_DELETED;
}

static void count(struct stage_difference *numbers, const struct comparison_item *item)
{
	uint64_t *const kinds[STAGE_CHANGE_KIND_COUNT] = {
		[STAGE_ADDED] = &numbers->added, [STAGE_MODIFIED] = &numbers->modified,
		[STAGE_DELETED] = &numbers->deleted,
	};

	++*kinds[item->kind];
	numbers->flagged += item->is_flagged;
	numbers->hidden += item->is_refused;
}

/* has_other_time: two that are the same but for that. */
static int add(struct comparison *comparison, struct side *before, struct side *now, bool has_other_time)
{
	const struct stage_change *change = now ? now->change : before->change;
	char **path = now ? &now->path : &before->path;
	struct comparison_item *item;
	bool has_size;

	if (comparison->count == comparison->capacity) {
		size_t capacity = comparison->capacity ? comparison->capacity * 2 : 64;
		struct comparison_item *grown = realloc(comparison->items, capacity * sizeof *grown);

		if (!grown)
			return -ENOMEM;
		comparison->items = grown;
		comparison->capacity = capacity;
	}
	has_size = now && change->staged_exists && S_ISREG(change->staged.st_mode);
	item = &comparison->items[comparison->count++];
	*item = (struct comparison_item){
		.path = *path, .kind = kind_of(before, now),
		.is_flagged = change->is_flagged, .is_refused = change->state == STAGE_REFUSED,
		.is_directory = change->staged_exists ? S_ISDIR(change->staged.st_mode) : S_ISDIR(change->host.st_mode),
		.is_time_alone = before && now ? has_other_time : is_time_alone(change),
		.size = has_size ? (uint64_t)change->staged.st_size : 0,
	};
	*path = NULL;
	return 0;
}

/* Whether they count as one change for who was shown the first. */
static bool is_alike(const struct side *before, const struct side *now)
{
	const struct stage_change *b = now->change;

	if (!before)
		return b->kind != STAGE_DELETED && !b->is_flagged && b->state != STAGE_REFUSED;
	return before->change->staged_exists && b->staged_exists &&
	       (before->change->staged.st_mode & S_IFMT) == (b->staged.st_mode & S_IFMT);
}

static int join(struct comparison *comparison, struct sides *before, struct sides *now,
		const struct comparison_options *options)
{
	size_t i = 0, j = 0;
	int r = 0;

	while (r == 0 && (i < before->count || j < now->count)) {
		struct side *a = i < before->count ? &before->items[i] : NULL;
		struct side *b = j < now->count ? &now->items[j] : NULL;
		int order = !a ? 1 : !b ? -1 : path_compare(a->path, b->path);

		if (order == 0) {
			bool has_other_time;

			r = options->is_rough && is_alike(a, b) ? 1 : is_same(a, b);
			has_other_time = r == 1 && options->has_times && !has_same_time(a, b);
			r = r == 0 || has_other_time ? add(comparison, a, b, has_other_time) : r < 0 ? r : 0;
		} else {
			if (order < 0)
				r = add(comparison, a, NULL, false);
			else if (!options->is_rough || !is_alike(NULL, b))
				r = add(comparison, NULL, b, false);
		}
		i += order <= 0;
		j += order >= 0;
	}
	return r;
}

static void finish(struct comparison *comparison)
{
	for (size_t i = 0; i < comparison->count; i++) {
		struct comparison_item *item = &comparison->items[i];

		item->is_implied = item->is_directory && !item->is_flagged && !item->is_refused &&
				   i + 1 < comparison->count &&
				   path_is_below(comparison->items[i + 1].path, item->path);
		if (!item->is_implied)
			count(&comparison->numbers, item);
	}
}

int comparison_make(struct comparison *ret_comparing, struct compared *before, struct compared *now,
		   const struct comparison_options *options, struct err *err)
{
	cleanup_sides struct sides earlier = { 0 }, later = { 0 };
	struct comparison comparison = { 0 };
	int r = before ? load_sides(before, options, &earlier, err) : 0;

	if (r == 0)
		r = load_sides(now, options, &later, err);
	if (r < 0)
		return r;
	r = join(&comparison, &earlier, &later, options);
	if (r < 0) {
		comparison_done(&comparison);
		return err_set(err, ERR_INTERNAL, -r, "stage", "two states cannot be compared: %s", strerror(-r));
	}
	finish(&comparison);
	*ret_comparing = comparison;
	return 0;
}

void comparison_done(struct comparison *comparison)
{
	for (size_t i = 0; i < comparison->count; i++)
		free(comparison->items[i].path);
	free(comparison->items);
	*comparison = (struct comparison){ 0 };
}
