/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The changes of a session as people are shown them: of all trees, filtered, renames found, in the order flagged first,
 * then what can be applied, then conflicts, then those that were settled, then what is refused, then what changed in
 * the sandbox's own system.
 */

#include "base/buf.h"
#include "prog/atoll-stage/verb/opened.h"

enum listing_group {
	GROUP_FLAGGED,
	GROUP_CLEAN,
	GROUP_CONFLICT,
	GROUP_SETTLED,
	GROUP_REFUSED,
	GROUP_SYSTEM,
	GROUP_COUNT,
};

struct listed {
	const struct stage_change *change;        /* borrowed */
	const struct stage_change *renamed_from;  /* the deleted one with the same bytes, or files; NULL */
	uint64_t renamed_files;                   /* of a directory: how many of its files came with it */
	enum listing_group group;
	bool is_rename_source;                    /* shown with its target */
	bool is_within_rename;                    /* shown with a directory that was renamed */
	bool is_implied;                          /* a directory that what is below it tells about */
};

struct listing {
	const struct opened *opened;              /* borrowed */
	struct stage_changes changes;             /* owned */
	struct listed *items;                     /* owned; in the order to be shown */
	size_t count;
	struct stage_counts counts;
};

/*
 * Walks the trees and makes the list. paths: absolute and normalised, what was asked for (count 0: all); each must
 * lie in a staged tree or above one. The program is confined by now.
 */
int listing_load(struct listing *ret_listing, const struct opened *opened, char *const *paths, size_t path_count,
		 struct err *err) MUST_USE;
void listing_done(struct listing *listing);

/* The path of a change as people are shown it: without the base, or absolute. Raw bytes, appended to out. */
void listing_put_path(const struct opened *opened, const struct stage_change *change, struct buf *out);
