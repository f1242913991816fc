/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether a body comes at all. Who announces its length and then sends a byte now and then holds a place of ours, and
 * of a server, for as long as he likes, though something moves. Bodies without an announced length are streams, which
 * may well be silent for minutes (events, answers that wait for something to happen): they are never looked at here. A
 * look is to be taken once in a while, always the same (intercept.c: each minute). Pure. Runs in atoll-egress.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In so many looks that much must come, or the end: some 200 bytes a second, as web servers ask for. */
enum { PROGRESS_LOOKS = 5, PROGRESS_BYTES = 64 << 10 };

/* Zero: nothing was looked at yet. */
struct progress {
	uint64_t message;      /* which one */
	uint64_t bytes;        /* of it, when these looks began */
	unsigned looks;
};

/*
 * is_expected: more of a body with an announced length is to come, and nobody but its sender holds it up. message tells
 * one from the next. bytes: of it so far. True: it is too slow, and given up.
 */
static inline bool progress_is_too_slow(struct progress *progress, bool is_expected, uint64_t message, uint64_t bytes)
{
	bool goes_on = is_expected && progress->looks && progress->message == message &&
		       bytes - progress->bytes < PROGRESS_BYTES;

	if (!goes_on)
		*progress = (struct progress){ message, bytes, is_expected };
	return goes_on && ++progress->looks > PROGRESS_LOOKS;
}
