/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What `atoll` says to people: one line for an error, whole buffers without stdio (its start and its buffers
 * would cost more than the rest of a start). Nothing hostile reaches the terminal unescaped.
 */

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"

/* "atoll: STAGE: WHAT; WHAT TO DO" on stderr. */
void say_error(const struct err *err);

/* Writes the buffer to stdout. -errno; a closed pipe is an error like any other. */
int say_out(struct buf *text, struct err *err) MUST_USE;

/* A line for people, with its newline, on stderr. Nothing of it is escaped here. */
void say_notice(const char *text);
