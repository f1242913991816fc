/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Renames a directory of a mounted overlay that the kernel does not rename (EXDEV), since a lower layer has it: its
 * files get names in a new directory, one by one. Runs in a child of atoll-box, outside of the sandbox, with the
 * rights over files that the sandbox's user namespace gives. Nothing may change in the tree while stage_move_run() is
 * at work; who holds the others still is not its affair.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct stat;

/* Both directories lie on one mount. Names have no slash. */
struct stage_move {
	int from_fd, to_fd;          /* borrowed, O_PATH */
	const char *from, *to;       /* borrowed */
	bool is_exchange;            /* RENAME_EXCHANGE */
	/* The empty directory at the new place, which stage_move_take_back() makes again; NULL: there was none. */
	const struct stat *target;   /* borrowed */
	/*
	 * Files that stay the same inode, by their numbers (borrowed, ascending): who has them open or watches them
	 * would notice. keeps_all: every file.
	 */
	const uint64_t *kept;
	size_t kept_count;
	bool keeps_all;
	uint64_t deadline_ns;        /* CLOCK_MONOTONIC: stage_move_run() gives up then, and takes back what it did */
};

enum { STAGE_MOVE_DEPTH_MAX = 512, STAGE_MOVE_ENTRIES_MAX = 1 << 20 };

/*
 * Has the kernel copy every file below to the upper layer, by which nothing changes that anybody sees. What takes long
 * and may find the disk full is over then. 0; -ENOTEMPTY: something is in the directory that it would replace; -ENOSPC,
 * -EDQUOT; -EXDEV: it cannot be moved (something is mounted in it, it is too deep or too big).
 */
int stage_move_prepare(const struct stage_move *move) MUST_USE;

/*
 * Moves it. 0, or as above, and then everything is at its old place again. Directories are new ones with the attributes
 * and times of the old. Files keep their other names that are in the tree too; of those outside they are cut off, as
 * the kernel does it when one of them is written to.
 */
int stage_move_run(const struct stage_move *move) MUST_USE;

/*
 * Takes back what a stage_move_run() left that was killed, in the middle or behind its last step. 0, or -errno: it is
 * in two places.
 */
int stage_move_take_back(const struct stage_move *move) MUST_USE;

/* After a move that is known to be over: removes the mark by which an exchange is taken back. 0, or -errno. */
int stage_move_settle(const struct stage_move *move) MUST_USE;
