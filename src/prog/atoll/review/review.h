/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the review verbs (diff, apply, undo, discard) have in common: which session and which paths the words on the
 * command line mean, and running atoll-stage with them. Nothing of what a sandbox wrote is looked at here.
 */

#include <limits.h>
#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/words.h"
#include "prog/atoll/verb/cmd.h"
#include "session/record.h"

struct review {
	struct words words;                 /* for atoll-stage */
	char **paths;                       /* as the user named them, NULL-terminated; borrowed */
	struct session_record session;      /* owned */
	char state[PATH_MAX];
};

/* Frees what it holds; a zeroed one is fine. */
void review_done(struct review *review);
#define cleanup_review __attribute__((cleanup(review_done)))

/*
 * For this verb and the words behind its options (NULL-terminated, borrowed): finds the session, which is the first
 * word where that is the id or the name of one, else the newest of the project that has staged anything. The other
 * words are paths. review is zeroed. Negative with *err.
 */
int review_find(struct review *review, const char *verb, char **words, struct err *err) MUST_USE;

/* Adds an option whose value is a path, as atoll-stage wants it: absolute, what is above real as far as it exists. */
int review_add_path(struct review *review, const char *option, const char *path, struct err *err) MUST_USE;

/*
 * Becomes atoll-stage with the options of this verb that are given and the paths; returns only where that failed. With
 * is_paged, and stdout a terminal, runs it with its output in the user's pager (ATOLL_PAGER, PAGER, else less), and
 * returns its exit status. What is for a terminal is said by --escape and --colour. Negative with *err.
 */
int review_exec(struct review *review, const struct cmd *cmd, const void *given, bool is_paged,
		struct err *err) MUST_USE;
