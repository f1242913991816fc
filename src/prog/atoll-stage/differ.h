/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Line differences by diffutils' diff(1), which every Debian has: a program that was fuzzed by decades, run anew for
 * each pair in a process that may read /usr and nothing else, with limits on its memory and its time. The texts go
 * to it as memory files and come back as bytes that nobody trusts. A child that is forked before atoll-stage
 * confines itself starts it, so that atoll-stage need not keep the right to start anything.
 */

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

enum {
	DIFFER_TEXT_MAX = 8 << 20,    /* bytes of one side */
	DIFFER_OUTPUT_MAX = 32 << 20, /* of one difference */
};

struct differ {
	int socket_fd;   /* owned; FD_NONE when it does not run */
};

/* Starts the child. -ENOENT with *err where there is no diff(1). Before confine_self(). */
int differ_start(struct differ *ret_differ, struct err *err) MUST_USE;
void differ_stop(struct differ *differ);

/* One text of a pair. */
struct differ_text {
	const void *bytes;
	size_t size;
};

/*
 * Appends the hunks of the unified difference to out, without the two lines of names. 0; -EFBIG when a text or the
 * answer is too large; -ETIME when it took too long; -EIO when diff failed; -EPIPE when the child is gone.
 */
int differ_run(struct differ *differ, const struct differ_text *before, const struct differ_text *after,
	       struct buf *out) MUST_USE;

/* Counts the lines that hunks add and remove. */
void differ_count(const struct buf *hunks, size_t *ret_added, size_t *ret_removed);
