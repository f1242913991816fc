/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * libatoll as the verbs use it: the places of whoever runs them, a running sandbox by the word on the command line, and
 * the library's errors as ours. What a verb does with a sandbox that runs is in atoll.h alone. Diff, apply, undo,
 * discard, snapshot and restore are no users of it: these verbs are what the library starts for that.
 */

#include "atoll.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "session/record.h"

/* The bit of the context's "events" for ATOLL_EVENT_<name>. */
#define LIBRARY_EVENT(name) (UINT64_C(1) << ATOLL_EVENT_##name)

/*
 * The context of this user, whose handles hear these events and, of commands, their own. The caller's to free. Negative
 * with *err.
 */
int library_context(uint64_t events, atoll_context **ret_context, struct err *err) MUST_USE;

/* The same, whose handles hear of the commands of others, too. */
int library_context_of_all(uint64_t events, atoll_context **ret_context, struct err *err) MUST_USE;

/*
 * The running sandbox of this id, beginning of an id, or name; NULL: the newest of the project of the working
 * directory. The caller's to free. Negative with *err.
 */
int library_find(atoll_context *context, const char *id_or_name, atoll_sandbox **ret_sandbox, struct err *err) MUST_USE;

/*
 * The record alone of the one that library_find() would find, behind library_context(): who has much to prepare calls
 * the box when that is done. The caller's; negative with *err.
 */
int library_find_record(const char *id_or_name, struct session_record *ret_session, struct err *err) MUST_USE;

/* What is on record of a sandbox that was found running. The caller's; negative with *err. */
int library_record(const atoll_sandbox *sandbox, struct session_record *ret_session, struct err *err) MUST_USE;

/* What the library said, as an error of ours: a negative errno. */
int library_fail(const struct atoll_error *error, struct err *err);

/* The same of ATOLL_EVENT_DONE or _FAILED with a code. */
int library_fail_event(const atoll_record *event, struct err *err);

/* Whether it failed because the sandbox is over, which for some verbs is what they want. */
bool library_is_gone(const struct atoll_error *error);

/* The next row of a cursor whose rows are there: 1, and 0 behind the last, or negative with *err. */
int library_next(atoll_cursor *cursor, atoll_record **ret_row, struct err *err) MUST_USE;

/* A number or a text of a record; 0 and NULL where it is not there. Borrowed. */
uint64_t library_number(const atoll_record *record, const char *key);
const char *library_text(const atoll_record *record, const char *key);

/* For cleanup attributes. */
void library_context_done(atoll_context **context);
void library_sandbox_done(atoll_sandbox **sandbox);
void library_record_done(atoll_record **record);
void library_cursor_done(atoll_cursor **cursor);
void library_policy_done(atoll_policy **policy);
#define cleanup_context __attribute__((cleanup(library_context_done)))
#define cleanup_sandbox __attribute__((cleanup(library_sandbox_done)))
#define cleanup_record __attribute__((cleanup(library_record_done)))
#define cleanup_cursor __attribute__((cleanup(library_cursor_done)))
#define cleanup_policy __attribute__((cleanup(library_policy_done)))

#define LIBRARY_ERROR ((struct atoll_error){ .size = sizeof(struct atoll_error) })
