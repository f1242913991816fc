/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the verbs about staged changes have in common: which session is meant, its layers held for a change, and
 * atoll-stage, which does everything that looks at what a sandbox wrote.
 */

#include <limits.h>
#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/words.h"
#include "session/record.h"
#include "session/review-log.h"
#include "stage/snapshot/lock.h"

/* Begins "atoll-stage VERB --state DIR --session ID", in words that are empty. session may be NULL. */
void staged_words(struct words *words, const char *verb, const char *state, const char *session);

/* Runs atoll-stage with these words and waits: its exit status (128 + N for signal N), or negative with *err. */
int staged_run(const struct words *words, struct err *err) MUST_USE;

/* Whether the text means a session: it has the form of an id, or a session of this state directory has that name. */
bool staged_is_session(const char *state, const char *text);

/* The newest session of the project of the working directory that may hold staged changes; -ENOENT with *err. */
int staged_find_newest(const char *state, struct session_record *ret_record, struct err *err) MUST_USE;

/*
 * The session that id_or_name means; NULL: the newest of the project of the working directory that may hold staged
 * changes. state gets the state directory.
 */
int staged_find(const char *id_or_name, char state[PATH_MAX], struct session_record *ret_record,
		struct err *err) MUST_USE;

/* Notes in the session's record whether it holds staged changes. */
int staged_mark(const char *state, const char *session, bool is_staged, struct err *err) MUST_USE;

/* What is done with the layers of a session, in its log: a record before it, and one of how it ended. */
struct staged_log {
	struct review_log log;
	struct review_entry entry;
};
/* Opens the log of the locked session and writes that this begins. subject: borrowed. Fails: nothing is to be done. */
int staged_log_begin(struct staged_log *log, const struct stage_lock *lock, enum audit_type type,
		     const char *subject, struct err *err) MUST_USE;
/* Writes how it ended, and closes the log. r: what came of it, which is returned; where it is 0 the log's error is. */
int staged_log_end(struct staged_log *log, int r, struct err *err) MUST_USE;

/* Has a chain that grew long joined in the background. What fails here fails again, and is said, at the next chance. */
void staged_flatten_later(const char *state, const struct stage_lock *lock);

/*
 * Takes a snapshot of a session, running or not. name: NULL: the next PREFIXn. The name that it got is in
 * ret_name (STAGE_SNAPSHOT_NAME_SIZE). prefix auto-: old ones are thinned out.
 */
struct staged_snapshot {
	const char *name, *prefix, *message;
};
/* 0; 125 when atoll-stage has said why there is none; negative with *err. The copy of a running session freezes it. */
int staged_snapshot(const char *state, const struct session_record *record, const struct staged_snapshot *wanted,
		    char *ret_name, struct err *err) MUST_USE;

/*
 * Takes a session that runs back to a snapshot, and says on stdout how to undo that. 0; 125 when atoll-stage has said
 * why it did not; negative with *err. Everything inside stands still meanwhile, for a minute at most.
 */
int staged_restore_running(const char *state, const struct session_record *record, const char *name, bool is_quiet,
			   struct err *err) MUST_USE;

/* Forgets a snapshot of the session, told to its log. -ENOENT with *err. */
int staged_forget(const char *state, const char *session, const char *name, struct err *err) MUST_USE;
