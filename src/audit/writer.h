/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Writes a session's action log: hash-chained JSON lines, appended by atoll-box alone as long as it lives.
 * Fails closed: after one failed write every further call fails with the same error.
 */

#include <stdint.h>

#include "audit/event.h"
#include "base/buf.h"
#include "base/hash.h"

enum {
	AUDIT_RECORD_MAX = 64 << 10,   /* a longer record has its subject and detail cut, and says so */
	AUDIT_BATCH_MAX = 256 << 10,   /* bytes kept before a write(2) is forced */
};

/* Hears of each record once it is queued; line: without its newline, borrowed. It writes no record itself. */
struct audit_observer {
	void (*wrote)(void *context, const struct audit_event *event, uint64_t seq, const void *line, size_t size);
	void *context;
};

struct audit_writer {
	int fd;                        /* owned; O_APPEND */
	char session[16];
	uint64_t next_seq;             /* from 1 */
	struct hash head;              /* SHA-256 of the last line without its newline; zeros before the first */
	struct hash written_head;      /* the same for the last line that is in the file */
	struct buf pending;            /* whole lines not yet written */
	int error;                     /* sticky negative errno */
	struct audit_observer observer; /* wrote NULL: nobody; set after audit_writer_init() */
};

/*
 * Takes fd, also when it fails: an empty log opened with O_APPEND, so that nothing that is written can be
 * overwritten through it. session: the id that every record carries, 12 characters of [a-z0-9].
 * -EINVAL for another id or a missing O_APPEND, -EEXIST where the log is not empty.
 */
int audit_writer_init(struct audit_writer *writer, int fd, const char *session) MUST_USE;

/*
 * The same for a log that may have records: the caller sets next_seq, head and written_head to its end (append.c, for
 * sessions whose box is gone).
 */
int audit_writer_init_at(struct audit_writer *writer, int fd, const char *session) MUST_USE;

/*
 * Formats, chains and queues one record; writes when AUDIT_BATCH_MAX is reached. Under 3 µs amortised.
 * 0, or the sticky error: the caller must end the session, for what follows would happen unseen.
 */
int audit_write(struct audit_writer *writer, const struct audit_event *event) MUST_USE;

/*
 * Writes what is queued. Called at least before the box goes idle, and before it answers a question.
 * Where the file takes only a part (ENOSPC, EDQUOT, EFBIG), it is cut back to its last whole line, and head and
 * next_seq tell what the file holds. The process must ignore SIGXFSZ. No fsync: a power cut may lose the end.
 */
int audit_flush(struct audit_writer *writer) MUST_USE;

/* Flushes and closes. Returns the sticky error. The head and count stay readable in *writer. */
int audit_writer_done(struct audit_writer *writer) MUST_USE;
