/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The index of a work tree, changed in a copy by libgit2. What the person has staged stays. Only the caller's paths
 * change. Nobody reads a file of the work tree here: what the index has to know of one is handed in. Run by the child
 * of atoll-stage that makes commits, in the git directory.
 */

#include <stdbool.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "text/commit.h"

struct index_copy;

/*
 * Copies the index to copy_path, which is replaced, and reads it; a missing one is empty. -EUCLEAN: it has conflicts
 * that are not resolved; -ERANGE: a split or sparse index, or one that cannot be read; -errno.
 */
int index_copy_open(const char *index_path, const char *copy_path, struct index_copy **ret_copy) MUST_USE;
void index_copy_free(struct index_copy *copy);

/* What it has at this path. Whether there is something. */
bool index_copy_find(const struct index_copy *copy, const char *path, struct commit_file *ret_file);

/* st: of the file in the work tree, as the kernel tells it after it was read. -EINVAL. */
int index_copy_put(struct index_copy *copy, const char *path, const struct commit_file *file,
		   const struct stat *st) MUST_USE;
/* Takes a path away, where there is one. 0; -EINVAL. */
int index_copy_remove(struct index_copy *copy, const char *path) MUST_USE;

/* Writes the copy to its file: 0; -EIO. */
int index_copy_store(struct index_copy *copy) MUST_USE;
