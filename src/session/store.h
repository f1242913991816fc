/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The session directory as the running box holds it: made at the start, locked while the box lives,
 * its record replaced at the end. Readers use session/record.h.
 */

#include <limits.h>
#include <stdbool.h>

#include "base/err.h"
#include "session/record.h"
#include "session/run-request.h"

struct store {
	int dir_fd;	     /* STATE/sessions/ID */
	int lock_fd;	     /* of audit.jsonl, flock held: the session is alive */
	int audit_fd;	     /* audit.jsonl, O_APPEND; taken by the audit writer */
	int denials_fd;	     /* denials.jsonl, O_APPEND, readable inside */
	bool has_end;	     /* the file for the record of the end is there */
	int output_fd;	     /* output.log of a detached run, or FD_NONE */
	char path[PATH_MAX]; /* of the directory */
	struct session_record record;
};

/*
 * Makes the directory with its lock and the files that are open while the sandbox lives. ERR_STATE with a hint when the
 * state directory cannot take them; then nothing is left.
 */
int store_open(struct store *ret_store, const struct run_request *request, struct err *err) MUST_USE;

/* The policy as it is enforced. ERR_STATE as above. */
int store_keep_policy(struct store *store, const struct run_policy *policy, struct err *err) MUST_USE;

/* Which imported system the session has (session/directories.h). ERR_STATE as above. */
int store_keep_root(struct store *store, const char *root, struct err *err) MUST_USE;

/* The record, which makes the directory a session's. ERR_STATE as above. */
int store_begin(struct store *store, const struct run_request *request, const struct run_policy *policy,
		struct err *err) MUST_USE;

/* Before it is a session's: from now on it is that of this session. ERR_STATE as above, and nothing has changed. */
int store_rename(struct store *store, const struct run_request *request, struct err *err) MUST_USE;

/* Makes what store_begin() writes to where the request waits for the rest of it, and the next. ERR_STATE as above. */
int store_expect_begin(struct store *store, struct err *err) MUST_USE;

/* Makes what store_save() writes to, ahead of it, once. Where that cannot be, store_save() says why it still cannot. */
void store_expect_end(struct store *store);

/* Writes the record, at the end. ERR_STATE with *err (which may be NULL). */
int store_save(struct store *store, struct err *err) MUST_USE;

/* Removes the directory: for a sandbox that never came to life. */
void store_discard(struct store *store);

/* Closes what is open, which gives the lock back, and frees the record. */
void store_done(struct store *store);
