/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a verb of atoll-stage does to the staged changes or the host, told to the session's log: once before it
 * happens, with what is planned, and once when it is over. Where the first cannot be written, nothing happens.
 */

#include "prog/atoll-stage/opened.h"
#include "session/review-log.h"
#include "stage/apply/transaction.h"

struct deed {
	struct review_log log;
	struct review_entry entry;   /* filled by the verb as it learns what is meant */
	bool is_begun;               /* the log knows */
};

#define DEED_INIT { .log = { .session_fd = FD_NONE, .log_fd = FD_NONE, .box_fd = FD_NONE } }

/* Opens the log: before the program confines itself. subject (the session) is borrowed. */
int deed_open(struct deed *deed, int sessions_fd, const char *session, enum audit_type type, struct err *err) MUST_USE;
void deed_done(struct deed *deed);
#define cleanup_deed __attribute__((cleanup(deed_done)))

/* NULL-terminated words of the command line. */
void deed_add_words(struct deed *deed, enum review_list_kind kind, const char *const *words);

/* A path of a tree, as the whole path. */
void deed_add_path(struct deed *deed, enum review_list_kind kind, const struct opened *opened, size_t tree,
		   const char *path);

/* Says that it is about to happen. */
int deed_begin(struct deed *deed, struct err *err) MUST_USE;

/* The same from within a transaction of this place, with its counts and the hash of what it will do. */
void deed_attach(struct deed *deed, struct transaction_place *place);

/* Says what became of interrupted transactions of before; nothing where there were none. */
int deed_recovered(struct deed *deed, const struct transaction_recovered *recovered, struct err *err) MUST_USE;

/*
 * Says how it ended, where it was begun. r: the result so far, which is returned; where it was well and the log
 * cannot be written, that error with *err.
 */
int deed_end(struct deed *deed, int r, struct err *err) MUST_USE;
