/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The only writer of a session's action log: hash-chained JSON lines, appended by atoll-box alone.
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

struct audit_writer {
	int fd;                        /* owned; O_APPEND */
	char session[16];
	uint64_t next_seq;             /* from 1 */
	struct hash head;              /* SHA-256 of the last line without its newline; zeros before the first */
	struct buf pending;            /* whole lines not yet written */
	int error;                     /* sticky negative errno */
};

/* Takes fd (an empty, append-only log). session: the id that every record carries. */
int audit_writer_init(struct audit_writer *writer, int fd, const char *session) MUST_USE;

/* Formats, chains and queues one record; writes when AUDIT_BATCH_MAX is reached. Under 3 µs amortised. */
int audit_write(struct audit_writer *writer, const struct audit_event *event) MUST_USE;

/* Writes what is queued. Called at least before the box goes idle, and before it answers a question. */
int audit_flush(struct audit_writer *writer) MUST_USE;

/* Flushes and closes. Returns the sticky error. The head and count stay readable in *writer. */
int audit_writer_done(struct audit_writer *writer) MUST_USE;
