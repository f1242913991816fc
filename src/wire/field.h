/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Named values in a frame: what a sandbox is started with, what happened in it and what it answers (wire/link.h) are
 * such records, so that a new one changes no layout. The form says nothing about which names there are.
 */

#include "wire/frame.h"

enum field_kind { FIELD_U64 = 1, FIELD_STRING, FIELD_BYTES, FIELD_STRINGS, FIELD_FD, FIELD_KIND_END };

struct field {
	const char *key;         /* never NULL */
	enum field_kind kind;
	uint64_t number;         /* FIELD_U64; FIELD_FD: the index of a descriptor that came with the frame */
	const void *bytes;       /* FIELD_STRING (with its NUL, never NULL), FIELD_BYTES */
	size_t size;             /* of bytes, without that NUL */
	char **strings;          /* FIELD_STRINGS: array owned by who got it (free()), strings borrowed */
};

/* One more, at the end of a frame that was begun. A string that is NULL is left out. */
void field_put_u64(struct buf *out, const char *key, uint64_t number);
void field_put_string(struct buf *out, const char *key, const char *text);
void field_put_bytes(struct buf *out, const char *key, const void *bytes, size_t size);
void field_put_strings(struct buf *out, const char *key, const char *const *strings);
void field_put_fd(struct buf *out, const char *key, uint64_t index);

/*
 * Appends what is left of another frame by kind, but its descriptors, which are no longer what they were. It stops
 * where the frame is none; out holds whole values alone in any case.
 */
void field_put_rest(struct buf *out, struct frame *frame);

/* The next one, borrowed from the frame. 1; 0: that was the last; -EBADMSG, and the frame has failed for good. */
int field_get(struct frame *frame, struct field *ret_field) MUST_USE;

/* Frees the array of strings that field_get() gave, and leaves a field without a value. */
void field_done(struct field *field);
