/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What `atoll apply` says in the end: in lines, or as one JSON object (doc/format/stage.md). It decides nothing; the
 * exit status follows from tell_apply_left() and tell_apply_marked().
 */

#include "prog/atoll-stage/apply/conflict-choice.h"
#include "prog/atoll-stage/apply/merge-texts.h"
#include "prog/atoll-stage/apply/outcome.h"
#include "stage/apply/apply.h"

struct apply_report {
	const struct opened *opened;     /* borrowed */
	const struct apply *apply;       /* borrowed */
	enum settlement settlement;
	const enum text_merge_result *text_merge_results; /* borrowed; of each item; NULL: nothing was to be merged */
	bool dry_run, quiet;
	bool is_aside;                   /* stdout has something else: it goes to stderr */
	size_t recovered;                /* transactions of before that were finished or taken back */
};

/* How many of the wanted items were left. */
size_t tell_apply_left(const struct apply *apply);
/* How many were applied with markers in them, which a person has to look at. */
size_t tell_apply_marked(const struct apply *apply);

/* To stdout: for people, escaped where the session says so; or one JSON object with exact names. Negative with *err. */
int report_apply_text(const struct apply_report *report, struct err *err) MUST_USE;
int report_apply_json(const struct apply_report *report, struct err *err) MUST_USE;
