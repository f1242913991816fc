/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Writes what a stack of layers shows, without the host, as one layer: the same whiteouts, opaque directories, marks
 * and hard links, so that an overlay on the one shows exactly what it showed on the many. Used to flatten chains,
 * to drop paths from them, to copy what a running sandbox writes while it is frozen, and to take single files into the
 * upper that will lie upon the layers.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stage/layer/layer.h"

enum stage_merge_how {
	STAGE_MERGE_LINK,   /* files are hard links: only for layers that nobody will ever write to again */
	STAGE_MERGE_COPY,   /* files are copies (reflinks where the file system has them) */
};

struct stage_merge {
	const struct stage_stack *stack; /* without host and mask */
	int to_fd;                       /* an empty directory; takes the attributes of the merged root */
	enum stage_merge_how how;
	/* NULL or: whether to leave out the entry at path (relative to the tree) and all below it. */
	bool (*is_dropped)(void *context, const char *path);
	void *context;
	bool is_part;                    /* it will lie upon these layers, so that no directory of it may hide theirs */
	/* Results. */
	uint64_t entries, dropped;
};

/* 0; -E2BIG at a limit of the walk, -ESTALE when something changed while it was read, -errno. Nothing is synced. */
int stage_merge(struct stage_merge *merge) MUST_USE;
