/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/judging.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "policy/decide.h"
#include "prog/atoll-stage/git-index.h"
#include "prog/atoll-stage/package.h"

int judging_init(struct judging *ret_judging, const struct opened *opened, struct err *err)
{
	struct judging judging = { .opened = opened };
	int r = flagging_init(&judging.flagging, snapshot_policy(opened->snapshot));

	judging.flagging.is_same_package = package_is_same;
	judging.flagging.is_ordinary_index = git_index_change_is_ordinary;
	if (r == 0)
		r = left_load(opened->stage_fd, opened->start_ns, &judging.left);
	if (r < 0) {
		judging_done(&judging);
		return err_set(err, ERR_STATE, -r, "stage", "what was applied before cannot be read: %s",
			       strerror(-r));
	}
	*ret_judging = judging;
	return 0;
}

void judging_done(struct judging *judging)
{
	flagging_done(&judging->flagging);
	left_free(judging->left);
	judging->left = NULL;
}

static bool is_flagged(void *context, const struct stage_change *change)
{
	struct judging *judging = context;

	return flagging_has(&judging->flagging, change);
}

/* What the box masked lies in the mask layer; a rule that it found nothing to hide for holds for apply all the same. */
static bool is_masked(void *context, const char *path)
{
	struct judging *judging = context;
	const char *full = flagging_path(&judging->flagging, path);
	const struct policy *policy = snapshot_policy(judging->opened->snapshot);

	return full && strlen(full) < PATH_MAX && policy_classify(policy, full, &(size_t){ 0 }) == FILE_MASK;
}

static bool is_own(void *context, const char *path, const struct stat *host)
{
	const struct judging *judging = context;

	return left_is_own(judging->left, judging->tree, path, host);
}

static bool is_seen(void *context, const struct stage_entry *entry)
{
	const struct judging *judging = context;

	return seen_has(judging->opened->seen, judging->tree, entry);
}

static bool was_seen(void *context, const char *path)
{
	const struct judging *judging = context;

	return seen_had(judging->opened->seen, judging->tree, path);
}

static bool is_restored(void *context, const char *path, const struct stat *host)
{
	const struct judging *judging = context;

	return left_is_own(judging->opened->restored, judging->tree, path, host);
}

static bool is_settled(void *context, const char *path, const struct stat *host, const struct stat *staged)
{
	const struct judging *judging = context;

	return left_is_settled(judging->left, judging->tree, path, host, staged);
}

int judging_begin(struct judging *judging, size_t tree, struct stage_change_options *ret_options)
{
	judging->tree = tree;
	*ret_options = (struct stage_change_options){
		.tree = tree,
		.start_ns = judging->opened->start_ns,
		.owner = geteuid() != 0 ? geteuid() : (uid_t)-1,
		.is_flagged = is_flagged,
		.is_masked = is_masked,
		.is_own = is_own,
		.is_restored = is_restored,
		.is_seen = is_seen,
		.was_seen = was_seen,
		.is_settled = is_settled,
		.context = judging,
	};
	return flagging_begin(&judging->flagging, judging->opened->record.trees[tree].path,
			      &judging->opened->stacks[tree]);
}

static bool has_change(const struct opened *opened, const struct stage_changes *changes, const char *path)
{
	for (size_t i = 0; i < changes->count; i++) {
		const struct stage_change *change = &changes->items[i];
		const char *tree = opened->record.trees[change->tree].path, *rest = path;
		size_t length = tree[1] ? strlen(tree) : 0;

		if (path_is_below(tree, path))
			return true;
		if (!path_is_below(path, tree))
			continue;
		rest = path + length + 1;
		if (path_is_below(change->path, rest) ||
		    (change->state == STAGE_REFUSED && path_is_below(rest, change->path)))
			return true;
	}
	return false;
}

int judging_know_paths(const struct opened *opened, const struct stage_changes *changes, char *const *paths,
		       struct err *err)
{
	struct stat st;

	for (; paths && *paths; paths++) {
		if (has_change(opened, changes, *paths) || lstat(*paths, &st) == 0 || errno != ENOENT)
			continue;
		err_set(err, ERR_NOT_FOUND, ENOENT, "stage",
			"%s: nothing is staged there, and the host has no such file", *paths);
		err_hint(err, "a session is named by its id or its name: atoll ps -a");
		return -ENOENT;
	}
	return 0;
}
