/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One judgement while it is made: the parsers, the clock, what the parsers took of memory, and the operations so far.
 * Between verify.c, which begins and ends it, and walk.c, which goes down into nested texts.
 */

#include "verify/walk.h"

struct judgement {
	struct arena arena;
	struct operations operations;
	uint64_t deadline_us;  /* of the monotonic clock */
	unsigned looks;        /* at the clock: not each time */
	unsigned nested_count;
	bool is_over;          /* a bound was hit: nothing more is walked */
};

/* Begins one that may take time_ms. Ended by judgement_done(). */
void judgement_init(struct judgement *judgement, unsigned time_ms);
void judgement_done(struct judgement *judgement);

/* Walks a whole text: its operations and doubts are in the judgement. text is NUL-terminated and lives in its arena. */
void judge_text(struct judgement *judgement, enum verify_language language, const char *text, size_t size);

/* Walks a command that is words already; their spans are of a text that the caller made. */
void judge_command(struct judgement *judgement, const struct word *words, size_t count, struct span span);

/* Parses what walk->text is and calls the walker of walk->language. */
void judge_walk(struct walk *walk);

/* Microseconds of the monotonic clock. */
uint64_t judge_clock_us(void);
