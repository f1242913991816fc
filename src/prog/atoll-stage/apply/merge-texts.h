/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * `atoll apply --merge`: texts that both sides changed are merged with what both began from (merge-base.h), by the
 * worker process (text/worker.h). Without that third text a merge would be a guess: then the path stays a conflict,
 * unless markers were asked for, which leave the guess to a person.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "prog/atoll-stage/apply/made-files.h"
#include "prog/atoll-stage/apply/merge-base.h"
#include "prog/atoll-stage/verb/opened.h"
#include "stage/apply/apply.h"
#include "text/worker.h"

/* Why a conflict stays one. */
enum text_merge_result {
	MERGING_NOT_TRIED,
	MERGING_DONE,
	MERGING_NO_TEXT,        /* not a regular file of lines on both sides, or too large */
	MERGING_NO_BASE,
	MERGING_CONTRADICTS,    /* both changed the same lines */
	MERGING_FAILED,         /* too much work */
	MERGING_RESULT_COUNT,
};

extern const char *const text_merge_texts[MERGING_RESULT_COUNT];

struct text_merge {
	struct text_worker worker;
	struct base base;
	struct made_files *files;     /* borrowed: where merges go; before text_merge_run() */
	enum text_merge_result *results; /* owned; of each item */
};

#define TEXT_MERGE_NONE ((struct text_merge){ .worker = TEXT_WORKER_NONE, .base = BASE_NONE })

/* Starts its processes. Before confining. */
int text_merge_start(struct text_merge *ret_merge, const struct opened *opened, struct err *err) MUST_USE;
void text_merge_done(struct text_merge *merge);
#define cleanup_text_merge __attribute__((cleanup(text_merge_done)))

/*
 * Merges the items that are conflicts of two texts; files has room for them. One that merges becomes APPLY_TAKEN with
 * the merge as its content, APPLY_KEPT where the host has it already; of another, results[] says why it stays.
 */
int text_merge_run(struct text_merge *merge, const struct opened *opened, struct apply *apply, bool with_markers,
		   bool dry_run, struct err *err) MUST_USE;
