/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a verb of atoll-stage does to the staged changes or the host, told to the session's log: once before it
 * happens, with what is planned, and once when it is over. Where the first cannot be written, nothing happens.
 */

#include "prog/atoll-stage/verb/opened.h"
#include "session/review-log.h"
#include "stage/transaction/transaction.h"

struct audit_step {
	struct review_log log;
	struct review_entry entry;   /* filled by the verb as it learns what is meant */
	bool is_begun;               /* the log knows */
};

#define AUDIT_STEP_INIT { .log = { .session_fd = FD_NONE, .log_fd = FD_NONE, .box_fd = FD_NONE } }

/* Opens the log: before the program confines itself. subject (the session) is borrowed. */
int audit_step_open(struct audit_step *step, int sessions_fd, const char *session, enum audit_type type,
		    struct err *err) MUST_USE;
void audit_step_done(struct audit_step *step);
#define cleanup_audit_step __attribute__((cleanup(audit_step_done)))

/* NULL-terminated words of the command line. */
void audit_step_add_words(struct audit_step *step, enum review_list_kind kind, const char *const *words);

/* A path of a tree, as the whole path. */
void audit_step_add_path(struct audit_step *step, enum review_list_kind kind, const struct opened *opened, size_t tree,
		   const char *path);

/* Says that it is about to happen. */
int audit_step_begin(struct audit_step *step, struct err *err) MUST_USE;

/* The same from within a transaction of this place, with its counts and the hash of what it will do. */
void audit_step_attach(struct audit_step *step, struct transaction_place *place);

/* Says what became of interrupted transactions of before; nothing where there were none. */
int audit_step_recovered(struct audit_step *step, const struct transaction_recovered *recovered,
			 struct err *err) MUST_USE;

/*
 * Says how it ended, where it was begun. r: the result so far, which is returned; where it was well and the log
 * cannot be written, that error with *err.
 */
int audit_step_end(struct audit_step *step, int r, struct err *err) MUST_USE;
