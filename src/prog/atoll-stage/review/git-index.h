/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether the index of a git repository names only files of a working tree. Git checks the names that it puts there,
 * and none that it reads: `git checkout .` writes an entry `.git/hooks/post-checkout` or `../.bashrc` as it stands.
 * Parses what the sandbox wrote, so it is for a confined program alone; bounded in memory, linear in bytes.
 */

#include <stdbool.h>

#include "stage/change/change.h"

/* Of an open file, from its start; has_sha256: as its repository has. False also where git would read no index. */
bool git_index_is_ordinary(int fd, bool has_sha256);

/* Of the index that a change brings. False where it cannot be read, or is no file. */
bool git_index_change_is_ordinary(const struct stage_stack *stack, const struct stage_change *change);
