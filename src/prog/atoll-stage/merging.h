/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * `atoll apply --merge`: text files that both sides changed go through `git merge-file`. A child that is forked before
 * atoll-stage confines itself runs git, on copies in memory, in a confinement of its own: it may read the staged trees
 * (for the base, which is what git's index has) and the system's programs, and write nothing. A merge with both sides'
 * lines in it never reaches the project: it is put into the session's directory.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "prog/atoll-stage/opened.h"
#include "stage/apply.h"

struct merging {
	int socket_fd;      /* owned; FD_NONE when it does not run */
	int dir_fd;         /* owned: stage/merged */
	char **files;       /* owned; for each item the file with both sides' lines, or NULL */
	char **names;       /* owned; for each item the name of its clean merge in stage/merged, or NULL */
	size_t count;
};

#define MERGING_NONE ((struct merging){ .socket_fd = FD_NONE, .dir_fd = FD_NONE })

/* Starts the child, and makes stage/merged empty. -ENOENT with *err where there is no git(1). Before confining. */
int merging_start(struct merging *ret_merging, const struct opened *opened, struct err *err) MUST_USE;
void merging_done(struct merging *merging);
#define cleanup_merging __attribute__((cleanup(merging_done)))

/*
 * Merges the items that are conflicts of two texts. One that merges cleanly becomes APPLY_TAKEN with the merge as its
 * content (APPLY_UNWANTED where the host has it already); of another, files[] names what git made of it.
 */
int merging_run(struct merging *merging, const struct opened *opened, struct apply *apply, bool dry_run,
		struct err *err) MUST_USE;
