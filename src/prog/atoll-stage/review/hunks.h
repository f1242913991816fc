/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What differs between two texts as blocks of lines, each of which is taken or left by itself. Where they begin and
 * end says the process that compares texts, which may have fallen to the texts; so nothing of it is believed but
 * numbers, and these only where all lines outside of the blocks are the same on both sides. What is shown and what is
 * made of it comes from the two texts themselves. Run by atoll-stage.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "text/worker.h"

/* Lines [old_at, old_at + old_count) become [new_at, new_at + new_count); lines count from 0. */
struct hunk_block {
	size_t old_at, old_count, new_at, new_count;
	bool begins_hunk;            /* the context around it does not reach the block before it */
	bool is_taken;
};

/* A text and where its lines begin. */
struct hunk_text {
	struct text_piece piece;     /* borrowed */
	size_t *starts;              /* owned; one more than there are lines */
	size_t count;
};

struct hunks {
	struct hunk_text old, new;
	struct hunk_block *blocks;   /* owned; in the order of the lines */
	size_t count;
};

/*
 * Compares two texts, which are borrowed. -EBADMSG: what the worker says does not fit them; -ENOMEM; errors of
 * text_worker_lines().
 */
int hunks_load(struct hunks *ret_hunks, struct text_worker *worker, const struct text_piece *old,
	       const struct text_piece *new) MUST_USE;
/* The same from the lines of a unified difference (tests). */
int hunks_parse(struct hunks *ret_hunks, const struct text_piece *difference, const struct text_piece *old,
		const struct text_piece *new) MUST_USE;
void hunks_done(struct hunks *hunks);
#define cleanup_hunks __attribute__((cleanup(hunks_done)))

/* The index behind the last block of the hunk that begins with block first. */
size_t hunks_end(const struct hunks *hunks, size_t first);

/* Makes each block of a hunk a hunk of its own. */
void hunks_split(struct hunks *hunks, size_t first);

/* Calls on_line for the header of a hunk, then for each line with ' ', '-' or '+' before it, without its newline. */
void hunks_show(const struct hunks *hunks, size_t first,
		void (*on_line)(void *context, const char *line, size_t size), void *context);

/* How many blocks are taken. */
size_t hunks_taken(const struct hunks *hunks);

/* Appends the old text with what is taken of the new one. */
void hunks_put_result(const struct hunks *hunks, struct buf *out);
