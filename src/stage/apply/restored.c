/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An apply of any session that was taken back leaves each path as it was, with other ctimes. What an op found is as at
 * our start if its ctime is of before, or if it was given back in the same way; then what the undo left is, too. For a
 * directory that says that nothing came or went in it, so all that the apply did in it must have been taken back, and
 * each transaction must have found it as the one before had left it.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "stage/apply/applied-entries.h"
#include "stage/apply/applied-state.h"
#include "stage/record/names.h"
#include "stage/record/record.h"
#include "stage/record/store.h"

enum { SESSIONS_MAX = 1 << 16 };

/* A session, ours or another, and where its journals are in left->journals. */
struct source {
	uint32_t trees[STAGE_TREES_MAX];    /* which of ours each of its trees is, or TREE_NONE */
	size_t first, end;
};

#define TREE_NONE UINT32_MAX

struct restoring {
	struct applied_state *left;
	const struct stage_record *record;
	uint64_t applied_since_ns;          /* an apply of before was there at the start: what it replaced was not */
	struct source *sources;             /* owned */
	size_t source_count;
	const struct source *source;        /* the one that is at hand */
};

/* An apply, and how much of it is taken back. */
struct undone {
	struct journal *apply;
	bool *ops;              /* owned: by op */
	uint32_t *pending;      /* owned: by directory, ops that still stand */
	struct paths index;     /* its directories */
};

static void undone_done(struct undone *undone)
{
	free(undone->ops);
	free(undone->pending);
	paths_done(&undone->index);
}

/* Whether entries came or went by it. */
static bool is_rename(const struct journal_op *op)
{
	return op->action == JOURNAL_ADD || op->action == JOURNAL_REPLACE || op->action == JOURNAL_REMOVE;
}

static int undone_init(struct undone *undone, struct journal *apply)
{
	int r = 0;

	*undone = (struct undone){ .apply = apply };
	undone->ops = calloc(apply->op_count + 1, sizeof *undone->ops);
	undone->pending = calloc(apply->directory_count + 1, sizeof *undone->pending);
	if (!undone->ops || !undone->pending)
		return -ENOMEM;
	for (size_t i = 0; i < apply->op_count; i++)
		if (apply->ops[i].outcome == JOURNAL_APPLIED && is_rename(&apply->ops[i]))
			undone->pending[apply->ops[i].directory]++;
	for (size_t i = 0; i < apply->directory_count && r == 0; i++) {
		struct journal_directory *directory = &apply->directories[i];

		/* The root changed once more when the area in it went. */
		if (!*directory->path && apply->areas[directory->tree].left.mode)
			directory->left = apply->areas[directory->tree].left;
		r = paths_put(&undone->index, directory->tree, directory->path, strlen(directory->path), (uint32_t)i);
	}
	/* Attributes are set after everything else. */
	for (size_t i = 0; i < apply->op_count && r == 0; i++) {
		const struct journal_op *op = &apply->ops[i];
		uint32_t at = op->action != JOURNAL_SET || op->outcome != JOURNAL_APPLIED ? PATHS_NONE :
			      paths_find(&undone->index, op->tree, op->path, strlen(op->path));

		if (at != PATHS_NONE)
			apply->directories[at].left = op->left;
	}
	return r;
}

static bool is_original(const struct restoring *restoring, uint32_t tree, const char *path,
			const struct identity *identity)
{
	const struct stamp *ctime = &identity->ctime;

	if (!identity->mode)
		return false;
	if (ctime->seconds >= 0 && (uint64_t)ctime->seconds * 1000000000ULL + ctime->ns < restoring->left->start_ns)
		return true;
	return applied_find(restoring->left, tree, path, identity);
}

static int add(struct restoring *restoring, uint32_t their_tree, const char *path, const struct identity *before,
	       const struct identity *left)
{
	uint32_t tree = restoring->source->trees[their_tree];

	if (tree == TREE_NONE || !left->mode || !is_original(restoring, tree, path, before))
		return 0;
	return applied_add(restoring->left, tree, path, left);
}

/* The op of the apply whose slot it was; slots ascend with the ops. */
static size_t find_op(const struct journal *apply, uint32_t slot)
{
	size_t low = 0, high = apply->op_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (apply->ops[middle].slot < slot)
			low = middle + 1;
		else
			high = middle;
	}
	return low < apply->op_count && apply->ops[low].slot == slot ? low : SIZE_MAX;
}

static int add_directory(struct restoring *restoring, struct undone *undone, const struct journal_directory *directory,
			 const struct identity *left)
{
	uint32_t at = paths_find(&undone->index, directory->tree, directory->path, strlen(directory->path));
	struct journal_directory *was = at == PATHS_NONE ? NULL : &undone->apply->directories[at];
	bool is_unbroken;
	int r = 0;

	if (!was)
		return 0;
	/* One that the apply removed has come back as it was. */
	is_unbroken = !was->left.mode || (was->left.inode == directory->before.inode &&
					  stamp_equal(was->left.ctime, directory->before.ctime));
	if (is_unbroken && !undone->pending[at])
		r = add(restoring, directory->tree, directory->path, &was->before, left);
	/* The next undo of this apply finds it so, or somebody came between. */
	if (is_unbroken)
		was->left = *left;
	else
		was->before = (struct identity){ 0 };
	return r;
}

/* The root of a tree in which nothing changed but that an area came and went. */
static int add_root(struct restoring *restoring, const struct undone *undone, const struct journal *undo, uint32_t tree)
{
	const struct journal_area *area = &undo->areas[tree], *was = &undone->apply->areas[tree];

	if (!area->left.mode || paths_find(&undone->index, tree, "", 0) != PATHS_NONE ||
	    !stamp_equal(area->root.ctime, was->left.ctime))
		return 0;
	return add(restoring, tree, "", &was->root, &area->left);
}

/* A directory whose attributes were set again: of one in which there is more, add_directory() has told the rest. */
static int add_set(struct restoring *restoring, struct undone *undone, const struct journal_op *op,
		   const struct journal_op *was)
{
	uint32_t at = paths_find(&undone->index, op->tree, op->path, strlen(op->path));
	struct journal_directory *directory = at == PATHS_NONE ? NULL : &undone->apply->directories[at];

	if (op->flags & JOURNAL_LENT)
		return 0;
	if (directory && !directory->before.mode)
		return 0;
	if (directory)
		directory->left = op->left;
	return directory && undone->pending[at] ? 0 : add(restoring, op->tree, op->path, &was->host, &op->left);
}

static int add_sets(struct restoring *restoring, struct undone *undone, const struct journal *undo)
{
	int r = 0;

	for (size_t i = 0; i < undo->op_count && r == 0; i++) {
		const struct journal_op *op = &undo->ops[i];
		size_t at = op->action == JOURNAL_SET && op->outcome == JOURNAL_APPLIED ?
			    find_op(undone->apply, op->slot) : SIZE_MAX;

		if (at != SIZE_MAX)
			r = add_set(restoring, undone, op, &undone->apply->ops[at]);
	}
	return r;
}

static int add_undo(struct restoring *restoring, struct undone *undone, const struct journal *undo)
{
	int r = applied_reserve(restoring->left, undo->op_count + undo->directory_count + STAGE_TREES_MAX);

	if (r == 0)
		r = known_put_journal(&restoring->left->known, undo);
	for (size_t i = 0; i < undo->op_count && r == 0; i++) {
		const struct journal_op *op = &undo->ops[i];
		size_t at = op->outcome == JOURNAL_APPLIED ? find_op(undone->apply, op->slot) : SIZE_MAX;
		const struct journal_op *was = at == SIZE_MAX ? NULL : &undone->apply->ops[at];

		if (!was || undone->ops[at])
			continue;
		undone->ops[at] = true;
		if (!is_rename(was))
			continue;
		undone->pending[was->directory]--;
		/* A directory that has come back is told of with what came back into it. */
		if (!S_ISDIR(op->left.mode) ||
		    paths_find(&undone->index, op->tree, op->path, strlen(op->path)) == PATHS_NONE)
			r = add(restoring, op->tree, op->path, &was->host, &op->left);
	}
	for (size_t i = 0; i < undo->directory_count && r == 0; i++) {
		const struct journal_directory *directory = &undo->directories[i];
		const struct journal_area *area = &undo->areas[directory->tree];
		bool is_root = !*directory->path && area->left.mode;

		r = add_directory(restoring, undone, directory, is_root ? &area->left : &directory->left);
	}
	if (r == 0)
		r = add_sets(restoring, undone, undo);
	for (uint32_t tree = 0; tree < STAGE_TREES_MAX && r == 0; tree++)
		r = add_root(restoring, undone, undo, tree);
	return r;
}

static int add_apply(struct restoring *restoring, struct journal *apply)
{
	const struct applied_state *left = restoring->left;
	struct undone undone;
	int r = undone_init(&undone, apply);

	for (const struct journal *undo = apply + 1; r == 0 && undo < left->journals + restoring->source->end; undo++)
		if (undo->undoes == apply->number)
			r = add_undo(restoring, &undone, undo);
	undone_done(&undone);
	return r;
}

static int compare_times(const void *a, const void *b)
{
	const struct journal *const *x = a, *const *y = b;

	return (*x)->time_ns < (*y)->time_ns ? -1 : (*x)->time_ns > (*y)->time_ns;
}

static const struct source *source_of(const struct restoring *restoring, size_t journal)
{
	const struct source *source = restoring->sources;

	while (journal >= source->end)
		source++;
	return source;
}

/* In the order of their times, since one may have found what the undo of another gave back. */
static int add_applies(struct restoring *restoring)
{
	struct applied_state *left = restoring->left;
	cleanup_free struct journal **applies = calloc(left->journal_count + 1, sizeof *applies);
	size_t count = 0;
	int r = applies ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < left->journal_count; i++)
		if (left->journals[i].kind == JOURNAL_APPLY && left->journals[i].time_ns >= restoring->applied_since_ns)
			applies[count++] = &left->journals[i];
	if (count)
		qsort(applies, count, sizeof *applies, compare_times);
	for (size_t i = 0; i < count && r == 0; i++) {
		restoring->source = source_of(restoring, (size_t)(applies[i] - left->journals));
		r = add_apply(restoring, applies[i]);
	}
	return r;
}

/* Which of our trees theirs are. 1: some; 0: none. */
static int map_trees(const struct restoring *restoring, int stage_fd, struct source *source)
{
	cleanup_stage_record struct stage_record theirs = { 0 };
	int r = stage_record_load(stage_fd, &theirs), some = 0;

	memset(source->trees, 0xff, sizeof source->trees);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	for (size_t i = 0; i < theirs.tree_count; i++)
		for (size_t k = 0; k < restoring->record->tree_count; k++)
			if (stage_tree_is(&theirs.trees[i], &restoring->record->trees[k])) {
				source->trees[i] = (uint32_t)k;
				some = 1;
			}
	return some;
}

static int load_session(struct restoring *restoring, int sessions_fd, const char *session)
{
	char path[SESSION_ID_SIZE + sizeof "/" STAGE_DIRECTORY];
	cleanup_fd int stage_fd = FD_NONE;
	struct source source = { .first = restoring->left->journal_count }, *sources;
	struct stat st;
	int r = str_format(path, sizeof path, "%s/" STAGE_DIRECTORY, session);

	if (r == 0)
		stage_fd = path_open2(sessions_fd, path, O_RDONLY | O_DIRECTORY, 0, STAGE_RESOLVE_BENEATH);
	/* The directory of the transactions changes with each of them. */
	if (r < 0 || stage_fd < 0 || fstatat(stage_fd, STAGE_DIRECTORY_APPLIES, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (uint64_t)st.st_ctim.tv_sec < restoring->applied_since_ns / 1000000000ULL)
		return 0;
	r = map_trees(restoring, stage_fd, &source);
	if (r == 1)
		r = applied_load_journals(restoring->left, stage_fd);
	source.end = restoring->left->journal_count;
	/* What cannot be read vouches for nothing. */
	if (r == -ENOMEM || source.end == source.first)
		return r == -ENOMEM ? r : 0;
	sources = reallocarray(restoring->sources, restoring->source_count + 1, sizeof *sources);
	if (!sources)
		return -ENOMEM;
	restoring->sources = sources;
	sources[restoring->source_count++] = source;
	return 0;
}

static int load_sessions(struct restoring *restoring, int sessions_fd)
{
	cleanup_fd int fd = fd_open_at(sessions_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	struct stage_names names = { 0 };
	const struct stage_names_source from = { .dir_fd = fd };
	int r = fd < 0 ? fd : stage_names_read(&names, &from, SESSIONS_MAX);

	for (size_t i = 0; r == 0 && i < names.count; i++) {
		const char *session = stage_names_get(&names, i);

		if (stage_session_is_valid(session))
			r = load_session(restoring, sessions_fd, session);
	}
	stage_names_done(&names);
	return r == -E2BIG ? 0 : r;
}

int applied_load_restored(int sessions_fd, const struct stage_record *record, uint64_t start_ns,
			  struct applied_state **ret_left)
{
	struct restoring restoring = { .left = calloc(1, sizeof *restoring.left), .record = record };
	int r = restoring.left ? 0 : -ENOMEM;

	/* The clock of an apply is not set back with ours: the later of both moments is the safe one. */
	restoring.applied_since_ns =
		record->started_realtime_ns > start_ns ? record->started_realtime_ns : start_ns;
	if (r == 0) {
		restoring.left->start_ns = start_ns;
		r = load_sessions(&restoring, sessions_fd);
	}
	if (r == 0)
		r = add_applies(&restoring);
	free(restoring.sources);
	if (r < 0) {
		applied_free(restoring.left);
		restoring.left = NULL;
	}
	*ret_left = restoring.left;
	return r;
}
