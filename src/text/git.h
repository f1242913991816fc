/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Line differences, binary differences and three-way merges of texts in memory, by libgit2. It is used on buffers only:
 * no repository is opened, no configuration and no attribute file is read, no filter is run. Reads hostile bytes, so
 * only the worker process calls this (worker.h).
 */

#include <stddef.h>

#include "base/cleanup.h"

/* One text; bytes NULL with size 0: there is none (of text_compare_binary(); elsewhere it is empty). */
struct text_piece {
	const void *bytes;
	size_t size;
};

/* Where the result goes: at most max bytes. */
struct text_result {
	char *bytes;       /* borrowed */
	size_t size, max;
};

/* Once, before anything else, and before confining: the library looks for things at its start. -EIO. */
int text_begin(void) MUST_USE;

/* The hunks of the unified difference, without names; empty for equal texts. -EFBIG where max is too small, -EIO. */
int text_compare_lines(const struct text_piece *before, const struct text_piece *after,
		       struct text_result *result) MUST_USE;

/* "index OLD..NEW", then "GIT binary patch" and what belongs to it. Errors as above. */
int text_compare_binary(const struct text_piece *before, const struct text_piece *after,
			struct text_result *result) MUST_USE;

enum { TEXT_MERGE_CLEAN, TEXT_MERGE_MARKED };

/*
 * The merge of what both sides made of base. TEXT_MERGE_CLEAN; TEXT_MERGE_MARKED where both changed the same lines,
 * which then stand between markers that name the sides; errors as above.
 */
int text_merge(const struct text_piece *base, const struct text_piece *host, const struct text_piece *session,
	      struct text_result *result) MUST_USE;
