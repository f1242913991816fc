/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Directories of layers that the sandbox closed to their owner (chmod 000). Root reads them anyway. For a user they are
 * opened before the layers are read, since nothing below one of them can be looked up otherwise, and get their modes
 * back when that is over: by a child process, as the program has confined itself by then, or was killed. Only the mode
 * is lent; what is reviewed and applied is the one that the sandbox gave. Who reads the same layers meanwhile is told
 * to wait (-EBUSY); a fork of the session is not, and takes the lent mode for the real one.
 */

#include <sys/stat.h>

#include "base/cleanup.h"

struct stage_closed;

enum {
	STAGE_CLOSED_MAX = 256,      /* directories; more, or deeper ones, stay unreadable */
	STAGE_CLOSED_DEPTH_MAX = 64,
};

/* NULL in *ret_closed as root, who needs nothing of this; every function takes that. -ENOMEM. */
int stage_closed_new(struct stage_closed **ret_closed) MUST_USE;

/*
 * Opens (O_RDONLY | O_DIRECTORY) the root of a layer of which path_fd (O_PATH, borrowed) is one. -EACCES where it is
 * not the caller's.
 */
int stage_closed_open(struct stage_closed *closed, int path_fd) MUST_USE;

/* Opens all closed directories below the root of a layer. 0; -ENOMEM. What cannot be opened stays closed. */
int stage_closed_scan(struct stage_closed *closed, int layer_fd) MUST_USE;

/*
 * Locks the session for this, and sees whether somebody else has directories of it open: -EBUSY. To be called after the
 * scans of its layers. stage_fd: its stage directory.
 */
int stage_closed_lock(struct stage_closed *closed, int stage_fd) MUST_USE;

/* Leaves it to a child to give the modes back when this process ends, or frees them. Before it confines itself. */
int stage_closed_keep(struct stage_closed *closed) MUST_USE;

/* The mode that the sandbox gave: of a directory that was opened so another one than st says. */
mode_t stage_closed_mode(const struct stage_closed *closed, const struct stat *st);

/* Gives the modes back, and waits until that is done. */
void stage_closed_free(struct stage_closed *closed);
