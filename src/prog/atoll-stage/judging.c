/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/judging.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "policy/decide.h"

enum { PATH_BYTES_MAX = 2 << 20 };

int judging_init(struct judging *ret_judging, const struct opened *opened, struct err *err)
{
	struct protects *protects = protects_new(snapshot_policy(opened->snapshot));
	struct left *left = NULL;
	int r = protects ? left_load(opened->stage_fd, opened->start_ns, &left) : -ENOMEM;

	if (r < 0) {
		protects_free(protects);
		return err_set(err, ERR_STATE, -r, "stage", "what was applied before cannot be read: %s",
			       strerror(-r));
	}
	*ret_judging = (struct judging){ .opened = opened, .protects = protects, .left = left };
	buf_init(&ret_judging->path, PATH_BYTES_MAX);
	return 0;
}

void judging_done(struct judging *judging)
{
	protects_free(judging->protects);
	judging->protects = NULL;
	left_free(judging->left);
	judging->left = NULL;
	buf_done(&judging->path);
}

static const char *absolute(struct judging *judging, const char *path)
{
	const char *tree = judging->opened->record.trees[judging->tree].path;

	buf_reset(&judging->path);
	/* The tree "/" ends in the slash that others lack. */
	buf_put_text(&judging->path, tree[1] ? tree : "");
	if (*path || !tree[1])
		buf_put_char(&judging->path, '/');
	buf_put_text(&judging->path, path);
	return buf_text(&judging->path);
}

static bool is_flagged(void *context, const char *path)
{
	struct judging *judging = context;
	const char *full = absolute(judging, path);

	return buf_error(&judging->path) || protects_has(judging->protects, full);
}

static bool is_flagged_stand_in(void *context, const char *path)
{
	struct judging *judging = context;
	const char *full = absolute(judging, path);

	return buf_error(&judging->path) || protects_has_above(judging->protects, full);
}

/* What the box masked lies in the mask layer; a rule that it found nothing to hide for holds for apply all the same. */
static bool is_masked(void *context, const char *path)
{
	struct judging *judging = context;
	const char *full = absolute(judging, path);
	const struct policy *policy = snapshot_policy(judging->opened->snapshot);

	return judging->path.size < PATH_MAX && policy_classify(policy, full, &(size_t){ 0 }) == FILE_MASK;
}

static bool is_own(void *context, const char *path, const struct stat *host)
{
	const struct judging *judging = context;

	return left_is_own(judging->left, judging->tree, path, host);
}

struct stage_change_options judging_options(struct judging *judging, size_t tree)
{
	judging->tree = tree;
	return (struct stage_change_options){
		.tree = tree,
		.start_ns = judging->opened->start_ns,
		.is_flagged = is_flagged,
		.is_flagged_stand_in = is_flagged_stand_in,
		.is_masked = is_masked,
		.is_own = is_own,
		.context = judging,
	};
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
