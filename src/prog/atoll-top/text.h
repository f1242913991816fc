/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Text in columns of a terminal: how wide it is, and cut or filled to a width. Every character takes the room that it
 * is counted for, so that no name can reach into its neighbour's place: what is invisible, changes what stands before
 * it, or cannot be shown in this locale becomes "?". The texts were escaped before (base/buf.h).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

#include "base/buf.h"

enum text_side { TEXT_LEFT, TEXT_RIGHT };

/* Once, behind setlocale(): whether characters beyond ASCII can be shown. */
void text_init(void);

/* The columns that a text takes. */
size_t text_width(const char *text);

/* The first width columns of a text, filled up with blanks; what is cut ends with "…" (or "~"). */
void text_put(struct buf *out, const char *text, size_t width, enum text_side side);

/* UTF-8 as text_put() made it, for curses: in out[size], terminated. */
void text_to_wide(const char *text, wchar_t *out, size_t size);
