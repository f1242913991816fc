/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Finds renames among the changes of a session: a deleted and an added file with the same bytes, and directories by
 * their files (renamed-directories.h). For showing only; an apply treats both paths as what they are.
 */

#include "base/cleanup.h"

struct listing;

enum {
	RENAMES_FILES_MAX = 1 << 17,        /* of each kind; beyond it none are looked for */
	RENAMES_BYTES_MAX = 256 << 20,   /* read in all */
};

/* Fills renamed_from and is_rename_source of the listing. -ENOMEM; files that cannot be read are no renames. */
int renames_find(struct listing *listing) MUST_USE;
