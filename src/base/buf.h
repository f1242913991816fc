/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A byte buffer that grows up to a maximum fixed at init. Overflow and allocation failure are
 * sticky: further puts do nothing and buf_error() tells, so that a writer checks once at the end.
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct buf {
	uint8_t *bytes;    /* owned unless is_fixed */
	size_t size;       /* bytes in use */
	size_t capacity;
	size_t max;
	int error;         /* 0, or the negative errno that stopped it (-ENOBUFS, -ENOMEM) */
	bool is_fixed;
};

/* An empty buffer that allocates on demand, up to max bytes. Freed by buf_done(). */
void buf_init(struct buf *buf, size_t max);

/* A buffer over caller-owned memory: never allocates; usable after clone and in signal handlers. */
void buf_init_fixed(struct buf *buf, void *memory, size_t size);

/* Frees the memory, but not what buf_init_fixed() was given. What is left takes nothing until it is begun again. */
void buf_done(struct buf *buf);
#define cleanup_buf __attribute__((cleanup(buf_done)))

/* Forgets the content and the error, keeps the memory. */
void buf_reset(struct buf *buf);

/* 0, or the sticky negative errno. */
int buf_error(const struct buf *buf);

/* Each appends as a whole, or not at all and sets the error: -ENOBUFS beyond the bound, -ENOMEM. No NUL is added. */
void buf_put(struct buf *buf, const void *bytes, size_t size);
void buf_put_text(struct buf *buf, const char *text);
void buf_put_char(struct buf *buf, char c);
void buf_put_u64_decimal(struct buf *buf, uint64_t value);
void buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Appends text so that it is safe on a terminal and in a line: control bytes, DEL, invalid UTF-8,
 * bidi and other invisible format characters become \xNN or \u{NNNN}; backslash becomes \\.
 * At most max_chars output bytes, then "…" (0: no limit).
 */
void buf_put_escaped(struct buf *buf, const void *bytes, size_t size, size_t max_chars);

/*
 * Appends a word as a POSIX shell reads it, in single quotes where it needs some. False, with nothing appended: it has
 * bytes that buf_put_escaped() would not show as they are, so nobody could copy it from a terminal.
 */
bool buf_put_shell_word(struct buf *buf, const char *word);

/* Makes room for size bytes and returns where to write them, or NULL (sticky error). */
void *buf_reserve(struct buf *buf, size_t size);

/* Drops the first size bytes (size <= buf->size). */
void buf_consume(struct buf *buf, size_t size);

/* The content as a C string, NUL-terminated in place; valid until the next put. "" on error. */
const char *buf_text(struct buf *buf);
