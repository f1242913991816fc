/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which side a person takes in a conflict. `ours` is the host's, since it is the host that somebody applies to, and
 * `theirs` is the session's. Merges are merge-texts.h's.
 */

#include "base/err.h"
#include "prog/atoll-stage/verb/path-filter.h"
#include "stage/apply/apply.h"

enum settlement {
	SETTLE_NOT,      /* conflicts are left */
	SETTLE_OURS,     /* the host's stays, and that is noted */
	SETTLE_THEIRS,   /* the session's takes its place */
	SETTLE_MERGE,    /* of texts both, where they do not contradict one another */
	SETTLE_MARKERS,  /* the same, with both between markers where they do */
	SETTLEMENT_COUNT,
};

extern const char *const settlement_names[SETTLEMENT_COUNT];  /* for --json */

/* The one that the flags name. -EINVAL with *err where they name several, or markers without a merge. */
int settlement_choose(bool ours, bool theirs, bool merge, bool markers, enum settlement *ret_settlement,
		      struct err *err) MUST_USE;

/*
 * Takes the side, in each conflict that is wanted. One that was settled before is opened again only where its path was
 * named. Merges: makes those that were settled conflicts again.
 */
void settling_run(struct apply *apply, struct path_filter *filter, enum settlement settlement);
