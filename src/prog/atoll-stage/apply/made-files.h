/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Files that an apply brings instead of what was staged: merges, and texts of which a person took a part. They lie in
 * stage/merged until they are in the project. Run by atoll-stage.
 */

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "prog/atoll-stage/verb/opened.h"
#include "text/git.h"

struct made_files {
	int dir_fd;                   /* owned: stage/merged */
	char **names;                 /* owned; for each item of the apply the name of its file there, or NULL */
	size_t count;
};

#define MADE_FILES_NONE ((struct made_files){ .dir_fd = FD_NONE })

/* Makes stage/merged empty and opens it. Before confining. */
int made_files_open(struct made_files *ret_files, const struct opened *opened, struct err *err) MUST_USE;

/* Makes room for the names of so many items. -ENOMEM. */
int made_files_begin(struct made_files *files, size_t count) MUST_USE;

/*
 * Writes the file of this item, with the permissions of mode and the user's attributes of the host's file. Its name,
 * owned by files; NULL: it could not be written, or the host's file is not the one that was judged.
 */
const char *made_files_put(struct made_files *files, size_t index, const struct stage_stack *stack,
			   const struct stage_change *change, const struct text_piece *content, mode_t mode) MUST_USE;

/* Removes them: what was applied is in the project by now. */
void made_files_done(struct made_files *files);
