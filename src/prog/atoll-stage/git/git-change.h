/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A change of a session as git sees it: its path in the work tree, its mode and its bytes. For commits on a new branch
 * and on the checked-out one. Run by atoll-stage, confined.
 */

#include <limits.h>

#include "prog/atoll-stage/git/git-ignored.h"

struct git_change_context {
	const struct opened *opened;     /* all borrowed */
	const struct apply *apply;
	const struct git_ignored *ignored;
	const char *root;                /* the work tree, absolute */
};

/* The path in the work tree, in full; NULL: it lies outside, or in what is git's own. */
const char *git_change_path(const struct git_change_context *context, const struct stage_change *change,
			    char full[PATH_MAX]);

/* What is staged, or the merge that takes its place: a file's bytes, or a link's target. The fd or -errno. */
int git_change_open(const struct git_change_context *context, const struct apply_item *item) MUST_USE;

/* Whether what was read from fd is what was judged: a session that runs may write on. */
bool git_change_is_still(const struct apply_item *item, int fd);

/* As git writes it: 0100644, 0100755, 0120000. */
mode_t git_change_mode(const struct stat *st);

/* git keeps files and links alone. */
bool git_change_is_file(bool exists, const struct stat *st);
