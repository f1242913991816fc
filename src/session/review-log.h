/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a person does with a session's staged changes, as records of its log: stage.snapshot, .restore, .apply,
 * .undo, .discard, .forget. While the box lives it writes them, asked over its control socket; afterwards they are
 * appended here, under a lock. Each act is told before it is done, and is not done where that fails; and again when
 * it is over. Used by atoll, atoll-stage and (the frame) atoll-box.
 */

#include <stdint.h>
#include <sys/types.h>

#include "audit/event.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "os/clock.h"
#include "wire/frame.h"

enum review_phase {
	REVIEW_BEGUN,         /* it is about to happen */
	REVIEW_DONE,
	REVIEW_FAILED,
	REVIEW_RECOVERED,     /* what a crash had interrupted was finished or taken back */
	REVIEW_PHASE_COUNT,
};

/* Numbers of a record; those that are 0 are left out. */
enum review_count {
	REVIEW_ADDED,
	REVIEW_MODIFIED,
	REVIEW_DELETED,
	REVIEW_LEFT,          /* asked for and not done */
	REVIEW_BYTES,         /* of file contents */
	REVIEW_APPLY,         /* the number of the apply that it is, or that is taken back */
	REVIEW_UNDO,          /* the number of the undo that it is */
	REVIEW_FINISHED,      /* interrupted transactions */
	REVIEW_TAKEN_BACK,
	REVIEW_DROPPED,       /* entries */
	REVIEW_HASHED_BYTES,  /* of contents that list_hash covers */
	REVIEW_COUNT_COUNT,
};

/* Lists of paths or words. What does not fit into all of them together is counted only. */
enum review_list_kind {
	REVIEW_ASKED,         /* PATH…; none: all */
	REVIEW_EXCLUDED,      /* -x */
	REVIEW_FLAGGED,       /* protected paths that were allowed by name */
	REVIEW_CONFLICTS,     /* paths that both sides changed, and that were left */
	REVIEW_KEPT,          /* conflicts that were settled: the host's stays, */
	REVIEW_TAKEN,         /* the session's took its place, */
	REVIEW_MERGED,        /* or both were merged */
	REVIEW_LIST_COUNT,
};

enum { REVIEW_ITEMS_MAX = 64, REVIEW_TEXT_MAX = 6 << 10 };

struct review_list {
	const char *items[REVIEW_ITEMS_MAX + 1];  /* NULL-terminated */
	size_t count;
	uint64_t total;
};

struct review_entry {
	enum audit_type type;         /* one for which audit_type_is_review() */
	enum review_phase phase;
	const char *subject;          /* a snapshot's name, or the session */
	uid_t uid;                    /* who; the box takes the peer's instead */
	uint64_t counts[REVIEW_COUNT_COUNT];
	struct review_list lists[REVIEW_LIST_COUNT];
	bool has_list_hash;
	struct hash list_hash;        /* of what was planned (doc/format/audit.md) */
	char text[REVIEW_TEXT_MAX];   /* where review_list_add() keeps items: an entry is not copied after that */
	size_t text_size;
};

/* Adds a copy of the item where it fits, else only counts it. */
void review_list_add(struct review_entry *entry, enum review_list_kind kind, const char *item);

/* The frame CONTROL_REVIEW. Getting: strings are the frame's, uid is not in it; -EBADMSG. */
int review_entry_put(struct buf *out, const struct review_entry *entry) MUST_USE;
int review_entry_get(struct frame *frame, struct review_entry *ret_entry) MUST_USE;

/* The record of an entry, which it borrows. */
struct audit_event review_event(const struct review_entry *entry);

/* The log of one session, opened to be told something. */
struct review_log {
	int session_fd;       /* owned; its flock keeps other writers out, while a record is added */
	int log_fd;           /* owned */
	int box_fd;           /* owned; FD_NONE: the box is gone */
	uid_t uid;            /* who acts: taken before the program changes what it is */
	char session[SESSION_ID_SIZE];
};

#define REVIEW_LOG_NONE ((struct review_log){ .session_fd = FD_NONE, .log_fd = FD_NONE, .box_fd = FD_NONE })

/*
 * Opens the log of the session whose directory is (sessions_fd, session). Before the program confines itself; adding
 * records then needs flock, lseek, read, write and sync, and messages on sockets. -errno with *err.
 */
int review_log_open(struct review_log *ret_log, int sessions_fd, const char *session, struct err *err) MUST_USE;
void review_log_done(struct review_log *log);
#define cleanup_review_log __attribute__((cleanup(review_log_done)))

/* Tells the log; waits up to 10 s for a box that is just ending. -errno with *err: then it must not be done. */
int review_log_put(struct review_log *log, struct review_entry *entry, struct err *err) MUST_USE;
