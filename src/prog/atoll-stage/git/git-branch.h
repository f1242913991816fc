/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * `atoll apply --branch`: what was chosen becomes a commit on a new branch of the repository that the project lies in,
 * upon its HEAD. The working tree and the index stay as they are, and the session keeps what it staged. All that reads
 * the repository is a child process that can start nothing, write nothing but objects and refs, and looks at no
 * setting of the repository (text/commit.h). Run by atoll-stage.
 */

#include "base/err.h"
#include "prog/atoll-stage/git/git-maker.h"
#include "prog/atoll-stage/verb/opened.h"
#include "stage/apply/apply.h"

struct git_branch {
	struct git_maker maker;
	struct git_repository repository;
};

#define GIT_BRANCH_NONE ((struct git_branch){ .maker = GIT_MAKER_NONE, .repository = GIT_REPOSITORY_NONE })

/* Finds the repository and starts the child. Before confining. -ENOENT, -ENOTSUP, -EEXIST with *err. */
int git_branch_start(struct git_branch *ret_branch, const struct opened *opened, const char *name,
		     struct err *err) MUST_USE;
void git_branch_done(struct git_branch *branch);

struct git_branch_result {
	char commit[64];             /* "" : nothing differs from HEAD */
	size_t files, ignored, outside; /* in the commit; left for a .gitignore; left, since git keeps no such thing */
};

/*
 * Commits what is APPLY_TAKEN. message: NULL for one that names the session. -ENOKEY with *err: nobody knows who the
 * author is.
 */
int git_branch_run(struct git_branch *branch, const struct opened *opened, const struct apply *apply,
		   const char *message, struct git_branch_result *ret_result, struct err *err) MUST_USE;
