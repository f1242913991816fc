/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Frames as tables: which field of a struct stands where, of which type, and how large it may be. One row is written
 * and read by the same code; what a frame demands beyond its rows its own file checks.
 */

#include <stddef.h>

#include "base/cleanup.h"
#include "wire/frame.h"

enum layout_kind {
	LAYOUT_U32,          /* uint32_t or an enum; limit: the largest value */
	LAYOUT_U64,
	LAYOUT_U16,          /* uint16_t; a u32 in the frame */
	LAYOUT_BOOL,         /* bool; a u32 of 0 or 1 in the frame */
	LAYOUT_TEXT,         /* const char *, never NULL when received; limit: of its length */
	LAYOUT_TEXT_OR_NULL, /* the same, or NULL */
	LAYOUT_TEXT_OR_EMPTY, /* NULL is sent as "", so that NULL is never received */
	LAYOUT_STRV,         /* char **; when received, the array is owned and the strings are borrowed; no limit */
	LAYOUT_HASH,         /* const uint8_t *: limit bytes, no more and no less */
	LAYOUT_ARRAY,        /* uint8_t[]: the same, in the struct itself */
};

struct layout {
	enum layout_kind kind;
	size_t offset;
	uint64_t limit;
};

/* A row for a field of struct TYPE; without a limit of its own, or with one. */
#define LAYOUT(type, kind, field) { LAYOUT_##kind, offsetof(struct type, field), UINT64_MAX }
#define LAYOUT_MAX(type, kind, field, limit) { LAYOUT_##kind, offsetof(struct type, field), (limit) }

/* Appends the fields of this struct to a frame that was begun. */
void layout_put(struct buf *out, const struct layout *rows, size_t count, const void *from);

/*
 * Reads them; strings are borrowed from the frame. 0; -EBADMSG where one is missing or beyond its limit: the frame has
 * failed for good, and the fields of *to are zero.
 */
int layout_get(struct frame *frame, const struct layout *rows, size_t count, void *to) MUST_USE;

/* What layout_get() made and a caller then refuses: frees the arrays, and zeroes the fields. -EBADMSG. */
int layout_refuse(struct frame *frame, const struct layout *rows, size_t count, void *to);

/* The whole frame of this type. 0 or the buffer's error. */
int layout_put_frame(struct buf *out, uint16_t type, const struct layout *rows, size_t count,
		     const void *from) MUST_USE;

/* The same for a frame that has these rows and nothing behind them. */
int layout_get_frame(struct frame *frame, const struct layout *rows, size_t count, void *to) MUST_USE;
