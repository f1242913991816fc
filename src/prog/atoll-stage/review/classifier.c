/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/review/classifier.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "policy/decide.h"
#include "prog/atoll-stage/review/git-index.h"
#include "prog/atoll-stage/review/package.h"

/* Of equal size. Git gives an object that it needs again a new time, and no new content. */
static bool has_same_bytes(const struct stage_stack *stack, const struct stage_change *change)
{
	cleanup_fd int staged_fd = stage_change_open(stack, change), host_fd = stage_change_open_host(stack, change);
	uint8_t staged[16 << 10], host[sizeof staged];

	if (staged_fd < 0 || host_fd < 0)
		return false;
	for (off_t at = 0; at < change->host.st_size; at += (off_t)sizeof staged) {
		ssize_t size = pread(staged_fd, staged, sizeof staged, at);

		if (size <= 0 || pread(host_fd, host, sizeof host, at) != size ||
		    memcmp(staged, host, (size_t)size) != 0)
			return false;
	}
	return true;
}

int classifier_init(struct classifier *ret_judging, const struct opened *opened, struct err *err)
{
	struct classifier classifier = { .opened = opened };
	int r = flagging_init(&classifier.flagging, snapshot_policy(opened->snapshot));

	classifier.flagging.is_same_package = package_is_same;
	classifier.flagging.is_ordinary_index = git_index_change_is_ordinary;
	classifier.flagging.is_same_object = has_same_bytes;
	if (r == 0)
		r = applied_load(opened->stage_fd, opened->start_ns, &classifier.left);
	if (r < 0) {
		classifier_done(&classifier);
		return err_set(err, ERR_STATE, -r, "stage", "the record of earlier applies cannot be read: %s",
			       strerror(-r));
	}
	*ret_judging = classifier;
	return 0;
}

void classifier_done(struct classifier *classifier)
{
	flagging_done(&classifier->flagging);
	applied_free(classifier->left);
	classifier->left = NULL;
}

static bool is_flagged(void *context, const struct stage_change *change)
{
	struct classifier *classifier = context;

	return flagging_has(&classifier->flagging, change);
}

/* What the box masked lies in the mask layer; a rule that it found nothing to hide for holds for apply all the same. */
static bool is_masked(void *context, const char *path)
{
	struct classifier *classifier = context;
	const char *full = flagging_path(&classifier->flagging, path);
	const struct policy *policy = snapshot_policy(classifier->opened->snapshot);

	return full && strlen(full) < PATH_MAX && policy_classify(policy, full, &(size_t){ 0 }) == FILE_MASK;
}

static bool is_own(void *context, const char *path, const struct stat *host)
{
	const struct classifier *classifier = context;

	return applied_is_own(classifier->left, classifier->tree, path, host);
}

static bool is_seen(void *context, const struct stage_entry *entry)
{
	const struct classifier *classifier = context;

	return seen_has(classifier->opened->seen, classifier->tree, entry);
}

static bool was_seen(void *context, const char *path)
{
	const struct classifier *classifier = context;

	return seen_had(classifier->opened->seen, classifier->tree, path);
}

static bool is_restored(void *context, const char *path, const struct stat *host)
{
	const struct classifier *classifier = context;

	return applied_is_own(classifier->opened->restored, classifier->tree, path, host);
}

static bool is_settled(void *context, const char *path, const struct stat *host, const struct stat *staged)
{
	const struct classifier *classifier = context;

	return applied_is_settled(classifier->left, classifier->tree, path, host, staged);
}

int classifier_begin(struct classifier *classifier, size_t tree, struct stage_change_options *ret_options)
{
	classifier->tree = tree;
	*ret_options = (struct stage_change_options){
		.tree = tree,
		.start_ns = classifier->opened->start_ns,
		.owner = geteuid() != 0 ? geteuid() : classifier->opened->record.trees[tree].owner_uid,
		.is_system = opened_is_system(classifier->opened, tree),
		.is_flagged = is_flagged,
		.is_masked = is_masked,
		.is_own = is_own,
		.is_restored = is_restored,
		.is_seen = is_seen,
		.was_seen = was_seen,
		.is_settled = is_settled,
		.context = classifier,
	};
	return flagging_begin(&classifier->flagging, classifier->opened->record.trees[tree].path,
			      &classifier->opened->stacks[tree]);
}

static bool has_change(const struct opened *opened, const struct stage_changes *changes, const char *path)
{
	for (size_t i = 0; i < changes->count; i++) {
		const struct stage_change *change = &changes->items[i];
		const char *tree = opened_tree(opened, change->tree), *rest = path;
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

int classifier_check_paths(const struct opened *opened, const struct stage_changes *changes, char *const *paths,
		       struct err *err)
{
	struct stat st;

	for (; paths && *paths; paths++) {
		if (has_change(opened, changes, *paths) || lstat(*paths, &st) == 0 || errno != ENOENT)
			continue;
		err_set(err, ERR_NOT_FOUND, ENOENT, "stage",
			"%s has no staged changes, and the host has no such file", *paths);
		err_hint(err, "a session is named by its id or its name: atoll ps -a");
		return -ENOENT;
	}
	return 0;
}
