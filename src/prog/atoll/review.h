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
#include "box/session.h"

enum { REVIEW_ARGS_MAX = 4096 };

/* An argument vector for atoll-stage. Strings that were added are copied. */
struct review {
	char *argv[REVIEW_ARGS_MAX + 1];    /* owned */
	size_t count;
	struct session_record session;      /* owned */
	char state[PATH_MAX];
};

/* verb: of atoll-stage. Freed by review_free(). NULL with *err when out of memory. */
struct review *review_new(const char *verb, struct err *err) MUST_USE;
void review_free(struct review *review);
static inline void cleanup_review_(struct review **review) { review_free(*review); }
#define cleanup_review __attribute__((cleanup(cleanup_review_)))

/* Adds an option, and its value where it is not NULL. -E2BIG, -ENOMEM with *err. */
int review_add(struct review *review, const char *option, const char *value, struct err *err) MUST_USE;

/*
 * Finds the session: the first word where that is the id or the name of one, else the newest session of the project
 * that has staged anything. Adds --state, --session and --base. 1 when the first word was used, 0, -errno with *err.
 */
int review_find(struct review *review, char **words, int count, struct err *err) MUST_USE;

/* Adds a path as atoll-stage wants it: absolute, the directories above it real as far as they exist. */
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
