/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The two sides of a change as texts: the bytes of a file, or the target of a link. Bounded; tells text from binary as
 * git does (a zero byte near the start).
 */

#include <stddef.h>

#include "prog/atoll-stage/verb/opened.h"

enum text_kind {
	TEXT_ABSENT,    /* nothing is there, or a directory */
	TEXT_LINES,
	TEXT_BINARY,
	TEXT_LARGE,     /* beyond the maximum; not read */
	TEXT_LOST,      /* it changed since it was judged, or cannot be read */
};

enum text_side { SIDE_HOST, SIDE_STAGED };

struct text {
	enum text_kind kind;
	char *bytes;    /* owned; with TEXT_LINES and TEXT_BINARY */
	size_t size;
};

/* max: bytes that are read at most. -ENOMEM; everything else is a kind. */
int text_load(const struct opened *opened, const struct stage_change *change, enum text_side side, size_t max,
	      struct text *ret_text) MUST_USE;
void text_done(struct text *text);
