/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Logs for the tests of audit/: written by the real writer into a memfd, read back, taken apart into lines and put
 * together again, so that a test says only what it damages.
 */

#include <stddef.h>

#include "audit/writer.h"

#define SAMPLE_SESSION "k3v9q2m4x7dt"

enum { SAMPLE_LINES_MAX = 64 };

struct sample_log {
	char *bytes;                            /* owned; NUL-terminated */
	size_t size;
	char *lines[SAMPLE_LINES_MAX];          /* owned copies, without newlines */
	size_t count;
	struct hash head;                       /* as the writer left it */
};

/* An empty append-only memfd. */
int sample_log_fd(void);

/* count records, the first session.start, the last session.end. */
void sample_log_make(struct sample_log *log, size_t count);
void sample_log_done(struct sample_log *log);

/* A new readable memfd with these lines, each with its newline. */
int sample_log_join(char *const *lines, size_t count);

/* A memfd with these bytes, its offset at the start. */
int sample_log_of_bytes(const void *bytes, size_t size);

/* All of fd from its start; NUL-terminated, freed by the caller. */
char *sample_log_read(int fd, size_t *ret_size);
