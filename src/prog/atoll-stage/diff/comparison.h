/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How one staged state differs from another: of the same session, or of one that was forked from it. Both are lists of
 * changes against the host as it is now; what is the same entry of the same layer is alike without a look, the rest by
 * kind, mode, bytes, attributes and link targets; times where that is asked for.
 */

#include "base/cleanup.h"
#include "prog/atoll-stage/verb/opened.h"
#include "stage/change/difference.h"

/* One state: its session, opened with its stacks, and what it would change. */
struct compared {
	struct opened opened;
	struct stage_changes changes;
};

struct comparison_item {
	char *path;                          /* owned; absolute */
	enum stage_change_kind kind;         /* what the second state does to what the first one has */
	bool is_flagged, is_refused, is_directory;
	bool is_time_alone;                  /* a file or link whose time of last change alone differs */
	bool is_implied;                     /* a directory that what is below it tells about */
	uint64_t size;                       /* of a file in the second state */
};

struct comparison {
	struct comparison_item *items;        /* owned; parents before what is in them */
	size_t count, capacity;
	struct stage_difference numbers;
};

struct comparison_options {
	/*
	 * The first state is what somebody was shown, the second one what came of it while others were at work: of
	 * files that both have changed the bytes are not compared, and what is new or modified in the second alone is
	 * left out where it is not protected.
	 */
	bool is_rough;
	/* A file or link whose time alone differs is listed, as an apply would bring it: not of what ran twice. */
	bool has_times;
};

/*
 * before NULL: what the second state has of its own, against the host. The program is confined by now. -ENOMEM, or what
 * the walk says, with *err.
 */
int comparison_make(struct comparison *ret_comparing, struct compared *before, struct compared *now,
		   const struct comparison_options *options, struct err *err) MUST_USE;
void comparison_done(struct comparison *comparison);
