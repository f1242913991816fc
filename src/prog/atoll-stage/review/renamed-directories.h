/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Finds directories that were renamed, by their files: a deleted and an added one, where at least half of the files of
 * the first are in the second under the same names. By contents alone, so that nothing inside can claim it. For showing
 * only, as renames.h.
 */

#include "base/cleanup.h"

struct listing;

/*
 * After renames_find(): fills renamed_from and renamed_files of directories, and is_within_rename of what is told with
 * them. -ENOMEM.
 */
int renamed_directories_find(struct listing *listing) MUST_USE;
