/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The folder: commits of what was chosen, without git. git-branch.h and git-commit.h are what `atoll apply` calls; the
 * other files are the steps of both.
 *
 * `atoll apply --commit`: what was applied becomes a commit on the checked-out branch, as `git commit --only` with
 * these paths would make it. What the person has staged of other paths stays staged. All that reads the repository is a
 * child process (git-maker.h). Run by atoll-stage.
 */

#include "base/err.h"
#include "prog/atoll-stage/git/git-attributes.h"
#include "prog/atoll-stage/git/git-maker.h"
#include "prog/atoll-stage/git/git-repository.h"

struct git_commit {
	struct git_maker maker;
	struct git_repository repository;
	struct git_attributes *attributes; /* owned */
	struct git_answer head;            /* what HEAD was in the beginning */
	int copy_fd;                       /* owned: the directory with the copy of the index */
	char copy_path[PATH_MAX];
	int stage_fd;                      /* borrowed: where that directory lies */
	int tree_fd;                       /* owned: the work tree */
};

#define GIT_COMMIT_NONE ((struct git_commit){ .maker = GIT_MAKER_NONE, .repository = GIT_REPOSITORY_NONE, \
					      .copy_fd = FD_NONE, .tree_fd = FD_NONE })

/* Finds the repository, refuses what it does not know, and starts the child. Before confining. Negative with *err. */
int git_commit_start(struct git_commit *ret_commit, const struct opened *opened, struct err *err) MUST_USE;
void git_commit_done(struct git_commit *commit);

/*
 * Before the choice is completed: what is git's own stays staged, for HEAD and the index are written here. How
 * many paths.
 */
size_t git_commit_leave_own(const struct git_commit *commit, const struct opened *opened, struct apply *apply);

/*
 * Before anything is applied: -EEXIST with *err, which names the path, where the person has changes of his own in a
 * file that would be committed, or where git would store other bytes.
 */
int git_commit_check(const struct git_commit *commit, const struct opened *opened, const struct apply *apply,
		     struct err *err) MUST_USE;

struct git_commit_result {
	char commit[COMMIT_HEX_SIZE]; /* "": nothing differs from HEAD */
	char branch[256];             /* "": HEAD is detached */
	size_t files, ignored, outside, own; /* the last three are not in the commit */
};

/*
 * Commits what was applied (APPLY_TAKEN). message: NULL for one that names the session. Also notes the commit beside
 * the apply, for undo. Negative with *err: it is applied, and not committed.
 */
int git_commit_run(const struct git_commit *commit, const struct opened *opened, const struct apply *apply,
		   const char *message, struct git_commit_result *ret_result, struct err *err) MUST_USE;

/* "HEX BRANCH" of the commit that was made of this apply, in out. False: there was none. */
bool git_commit_of_apply(int stage_fd, uint32_t number, char *out, size_t size);
