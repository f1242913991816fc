/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the review verbs (diff, apply, undo, …) have in common: which session and which paths the words on the command
 * line mean, and running atoll-stage with them. Nothing of what a sandbox wrote is looked at here.
 */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "session/record.h"

enum { REVIEW_ARGS_MAX = 4096 };

/* An argument vector for atoll-stage. Strings that were added are copied. */
struct review {
	char *argv[REVIEW_ARGS_MAX + 1];    /* owned */
	size_t count;
	struct session_record session;      /* owned */
	char state[PATH_MAX];
};

/*
 * For this verb of atoll-stage and the words behind the options: finds the session, the first word where that is the
 * id or the name of one, else the newest session of the project that has staged anything, and adds --state, --session
 * and --base. *used: how many words that took (0 or 1). Freed by review_free(). NULL with *err.
 */
struct review *review_new(const char *verb, char **words, int count, int *used, struct err *err) MUST_USE;
void review_free(struct review *review);
static inline void cleanup_review_(struct review **review) { review_free(*review); }
#define cleanup_review __attribute__((cleanup(cleanup_review_)))

/* Adds an option, and its value where it is not NULL. -E2BIG, -ENOMEM with *err. */
int review_add(struct review *review, const char *option, const char *value, struct err *err) MUST_USE;

/* An option of atoll-stage that is passed on where it was given. */
struct review_flag {
	bool is_given;
	const char *option;
};
int review_add_flags(struct review *review, const struct review_flag *flags, size_t count, struct err *err) MUST_USE;

/* Adds paths as atoll-stage wants them: absolute, the directories above them real as far as they exist. */
int review_add_paths(struct review *review, char **words, int count, struct err *err) MUST_USE;
int review_add_path(struct review *review, const char *word, struct err *err) MUST_USE;

/*
 * Becomes atoll-stage; returns only where that failed. What is for a terminal is said by --escape and --colour, which
 * are added here where stdout is one.
 */
int review_exec(struct review *review, struct err *err) MUST_USE;

/*
 * Runs atoll-stage with its output in the user's pager (ATOLL_PAGER, PAGER, else less), if stdout is a terminal;
 * else as review_exec(). The exit status of atoll-stage, or -errno with *err.
 */
int review_exec_paged(struct review *review, struct err *err) MUST_USE;
