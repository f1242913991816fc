/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What of the changes is nothing for a commit: new files that a .gitignore of the work tree names, as the session left
 * it or else as the host has it, and what belongs to another repository. The user's and the repository's own lists of
 * ignored files are not read. Run by atoll-stage, confined.
 */

#include <stdbool.h>

#include "base/cleanup.h"
#include "prog/atoll-stage/verb/opened.h"
#include "stage/apply/apply.h"

struct git_ignored;

/* All borrowed. root: the work tree. -ENOMEM. */
int git_ignored_new(const struct opened *opened, const struct apply *apply, const char *root,
		    struct git_ignored **ret_ignored) MUST_USE;
void git_ignored_free(struct git_ignored *ignored);

/* Whether a file at this path below the root is ignored. */
bool git_ignored_has(struct git_ignored *ignored, const char *path);

/* Whether it is git's own, of this repository or of one in it. */
bool git_ignored_is_own(const struct git_ignored *ignored, const char *path);
