/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How the verbs have changes judged: stage/change/change.h's options filled from the session, so that each verb flags,
 * masks and compares alike. The session's start, its policy's protected paths, and (as is_own) what earlier applies
 * left.
 */

#include "prog/atoll-stage/verb/opened.h"
#include "session/flagging.h"
#include "stage/apply/applied-state.h"

struct classifier {
	const struct opened *opened;   /* borrowed */
	struct flagging flagging;
	struct applied_state *left;             /* owned; NULL: nothing was applied yet */
	size_t tree;                   /* of the walk that goes on */
};

/* -ENOMEM with *err. */
int classifier_init(struct classifier *ret_judging, const struct opened *opened, struct err *err) MUST_USE;
void classifier_done(struct classifier *classifier);

/*
 * Whether each of the paths (absolute, normalised; NULL-terminated) is known: a change lies at or below it, it lies
 * in what is refused whole, or the host has something there. -ENOENT with *err for one that may be a slip of the keys.
 */
int classifier_check_paths(const struct opened *opened, const struct stage_changes *changes, char *const *paths,
		       struct err *err) MUST_USE;

/* The options for one tree; they borrow classifier, which serves one walk at a time. -ENOMEM. */
int classifier_begin(struct classifier *classifier, size_t tree, struct stage_change_options *ret_options) MUST_USE;
