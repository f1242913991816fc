/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * `atoll apply --merge`: texts that both sides changed are merged with what both began from (base.h), by the worker
 * process (text/worker.h). Without that third text a merge would be a guess: then the path stays a conflict, unless
 * markers were asked for, which leave the guess to a person.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "prog/atoll-stage/base.h"
#include "prog/atoll-stage/opened.h"
#include "stage/apply/apply.h"
#include "text/worker.h"

/* Why a conflict stays one. */
enum merging_result {
	MERGING_NOT_TRIED,
	MERGING_DONE,
	MERGING_NO_TEXT,        /* not a regular file of lines on both sides, or too large */
	MERGING_NO_BASE,
	MERGING_CONTRADICTS,    /* both changed the same lines */
	MERGING_FAILED,         /* too much work */
	MERGING_RESULT_COUNT,
};

extern const char *const merging_texts[MERGING_RESULT_COUNT];

struct merging {
	struct text_worker worker;
	struct base base;
	int dir_fd;                   /* owned: stage/merged */
	enum merging_result *results; /* owned; of each item */
	char **names;                 /* owned; for each item the name of its merge in stage/merged, or NULL */
	size_t count;
};

#define MERGING_NONE ((struct merging){ .worker = TEXT_WORKER_NONE, .base = BASE_NONE, .dir_fd = FD_NONE })

/* Starts its processes, and makes stage/merged empty. Before confining. */
int merging_start(struct merging *ret_merging, const struct opened *opened, struct err *err) MUST_USE;
void merging_done(struct merging *merging);
#define cleanup_merging __attribute__((cleanup(merging_done)))

/*
 * Merges the items that are conflicts of two texts. One that merges becomes APPLY_TAKEN with the merge as its content,
 * APPLY_KEPT where the host has it already; of another, results[] says why it stays.
 */
int merging_run(struct merging *merging, const struct opened *opened, struct apply *apply, bool with_markers,
		bool dry_run, struct err *err) MUST_USE;
