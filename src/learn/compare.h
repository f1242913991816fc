/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What one policy decides otherwise than another about the things that a session really did: `atoll policy test`. Pure
 * but for the log that it reads; bounded, however long the log is. Run by atoll-learn.
 */

#include "base/buf.h"
#include "learn/observed.h"

enum {
	COMPARE_KEPT_MAX = 4096,       /* different decisions that are kept; more are counted */
};

struct difference {
	char *action;                  /* "net.connect example.com:443", escaped; owned */
	enum verdict before, after;
	struct rule_origin rule;       /* that decides now; borrowed from the policy */
	const char *reason;
	uint64_t record;               /* the first one */
	uint64_t count;
};

struct comparison {
	const struct policy *before;   /* that the session ran under; borrowed, as the next */
	const struct policy *after;
	struct observed_log log;
	uint64_t same;                 /* actions about which both say the same */
	uint64_t different;            /* all others, those that are not kept too */
	size_t count, left_out;
	struct difference *kept;       /* in the order of their first records */
	uint32_t *slots;               /* of kept, by what they are about */
};

/* Reads the log at the fd (borrowed). Afterwards comparison_done(). -errno, -ENOMEM. */
int comparison_make(struct comparison *ret_comparison, const struct policy *before, const struct policy *after,
		    int log_fd) MUST_USE;
void comparison_done(struct comparison *comparison);

/* Who is compared, for people. */
struct comparison_names {
	const char *session, *policy;
};

/* A table, or one JSON object, with its newline. */
void comparison_format(const struct comparison *comparison, const struct comparison_names *names, struct buf *out);
void comparison_format_json(const struct comparison *comparison, const struct comparison_names *names, struct buf *out);
