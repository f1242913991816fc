/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reads an action log line by line in bounded memory, also while it grows. Knows lines only: what stands in
 * them is the business of verify.h, and of a JSON library. Run by atoll-log and the tests; the log is hostile.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct audit_reader {
	int fd;               /* borrowed; read from its offset on */
	char *bytes;          /* owned */
	size_t start, end;    /* what was read and not yet given out */
	bool is_skipping;     /* inside a line that was too long */
};

enum audit_line {
	AUDIT_LINE_NONE,      /* the end: nothing is left. More may come later: call again */
	AUDIT_LINE_WHOLE,
	AUDIT_LINE_PARTIAL,   /* the end, behind bytes without a newline; they stay for the next call */
	AUDIT_LINE_TOO_LONG,  /* AUDIT_RECORD_MAX bytes and no newline; the next call goes on behind the line */
};

/* -ENOMEM, else 0. */
int audit_reader_init(struct audit_reader *reader, int fd) MUST_USE;
void audit_reader_done(struct audit_reader *reader);
#define cleanup_audit_reader __attribute__((cleanup(audit_reader_done)))

/* enum audit_line, or -errno. The line (without its newline) is borrowed until the next call. */
int audit_reader_next(struct audit_reader *reader, const char **ret_line, size_t *ret_size) MUST_USE;

/* Back to the first line. -errno as lseek(2). */
int audit_reader_rewind(struct audit_reader *reader) MUST_USE;
