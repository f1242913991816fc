/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a trial (`atoll dry-run`) shows beside its changed files: whom it tried to reach, what was refused, and what
 * verification found. Out of its log, which is hostile. Run by atoll-learn; the numbers alone go to the atoll that
 * decides by them.
 */

#include <stdint.h>

#include "base/buf.h"
#include "learn/tally.h"

enum { EFFECTS_KEPT_MAX = 4096 };

enum effects_group {
	EFFECTS_OUTGOING,   /* the policy lets it out: in the trial nothing went */
	EFFECTS_ASKED,      /* a person would have been asked; nobody was */
	EFFECTS_REFUSED,    /* the policy refuses it, then as now */
	EFFECTS_FOUND,      /* what a command was found to do, and what was alarming */
	EFFECTS_GROUP_COUNT,
};

/* Written to LEARN_NUMBERS_FD, whole. Different things, not how often. */
struct effects_numbers {
	uint64_t of[EFFECTS_GROUP_COUNT];
	uint64_t unreadable;     /* lines of the log: then nothing is known for sure */
	uint64_t has_end;        /* 1: the log is whole */
};

struct effects {
	struct tally groups[EFFECTS_GROUP_COUNT];
	struct tally requested;  /* connections that requests say more about */
	struct effects_numbers numbers;
};

/* Reads the log from the fd's offset (borrowed). -errno; -ENOMEM. */
int effects_read(struct effects *ret_effects, int log_fd) MUST_USE;
void effects_done(struct effects *effects);

/* Some lines for people, at most `lines` of each group; or a JSON object. */
void effects_format(const struct effects *effects, uint64_t lines, struct buf *out);
void effects_format_json(const struct effects *effects, struct buf *out);
