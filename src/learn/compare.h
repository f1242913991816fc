/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What one policy decides otherwise than another about the things that a session really did: `atoll policy test`. Pure
 * but for the log that it reads; bounded, however long the log is. Run by atoll-learn.
 */

#include "base/buf.h"
#include "learn/observed.h"
#include "learn/tally.h"

enum {
	COMPARE_KEPT_MAX = 4096,       /* different decisions that are kept; more are counted */
};

struct difference {
	enum verdict before, after;
	struct rule_origin rule;       /* that decides now; borrowed from the policy */
	const char *reason;
};

struct comparison_sides {
	const struct policy *before, *after;
	bool is_without_listings;      /* leaves out opened directories: a rule for one is one for all below */
};

/* What a session may not have recorded, so that a difference in it cannot be seen. */
enum comparison_gap {
	GAP_READS,
	GAP_WRITES,
	GAP_PROGRAMS,
	GAP_NETWORK,
	COMPARISON_GAP_COUNT,
};

struct comparison {
	const struct policy *before;   /* that the session ran under; borrowed, as the next */
	const struct policy *after;
	bool is_without_listings;
	struct observed_log log;
	uint64_t same;                 /* actions about which both say the same */
	uint64_t different;            /* all others, those that are not kept too */
	bool is_unrecorded[COMPARISON_GAP_COUNT];
	bool may_differ[COMPARISON_GAP_COUNT]; /* unrecorded, and the policies decide otherwise about some of it */
	uint64_t relative;             /* programs by relative paths, which nobody can decide about */
	struct tally tally;            /* of the actions, in the order of their first records */
	struct difference *kept;       /* as many as in the tally, in the same order */
};

/* Reads the log at the fd (borrowed). Afterwards comparison_done(). -errno, -ENOMEM. */
int comparison_make(struct comparison *ret_comparison, const struct comparison_sides *sides, int log_fd) MUST_USE;
void comparison_done(struct comparison *comparison);

/*
 * Whether something that the session did, and that its log does not show or that cannot be decided about, may be
 * decided otherwise: then "none would differ" says nothing.
 */
bool comparison_is_incomplete(const struct comparison *comparison);

/* Who is compared, for people. */
struct comparison_names {
	const char *session, *policy;
};

/* A table, or one JSON object, with its newline. */
void comparison_format(const struct comparison *comparison, const struct comparison_names *names, struct buf *out);
void comparison_format_json(const struct comparison *comparison, const struct comparison_names *names, struct buf *out);
