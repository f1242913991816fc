/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Renames of directories that the kernel refuses in a staged tree: one child of the box at a time moves the directory
 * (stage/snapshot/move-tree.h), while everything else inside stands still (supervise/freeze.h). The caller waits for
 * the answer. Run by atoll-box.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "supervise/module.h"
#include "watch/watch.h"

struct disk_full;
struct file_gate;
struct run;
struct move;

/* How many renames wait for the one at work; and of how many the outcome is kept until their callers ask for it. */
enum { MOVES_WAITING_MAX = WATCH_FILES_WAITING_MAX, MOVES_DONE_MAX = 8 };

struct moves {
	struct run *run;
	struct file_gate *files;     /* which writes down what became of it */
	const struct disk_full *disk;
	struct move *move;           /* owned: the one at work; NULL: none */
	struct move *done[MOVES_DONE_MAX]; /* owned */
	size_t next_done;
	uint64_t waiting[MOVES_WAITING_MAX]; /* notifications that are to be judged again */
	size_t waiting_count;
	bool is_due;                 /* these may go on */
};

/* on_move and on_moved of watch/watch.h; the three pointers above are set. */
int move_begin(struct moves *moves, const struct watch_move *event);
int move_find(struct moves *moves, const struct watch_move *event);

/*
 * Nothing inside goes on any more, or it stands still: waits until a move at work is over, and ends its child. Before
 * anybody waits for the end of what is inside, for the child may hold some of it.
 */
void moves_done(struct moves *moves);

/* Its state is a struct moves: goes on with what had to wait for a freeze or for another move. */
extern const struct module moves_module;
