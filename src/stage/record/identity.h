/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What tells whether a file is still the one that was looked at: type, inode, size and times. Kept in the journal of an
 * apply, so that a later change by anybody else is seen. The inode's number is unique while its file exists; the
 * device is left out because it changes between boots (a staged tree is one file system).
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/cleanup.h"

struct stamp {
	int64_t seconds;
	uint32_t ns;
};

struct identity {
	uint32_t mode;         /* as st_mode, with the type; 0: nothing is there */
	uint32_t uid, gid;
	uint32_t links;
	uint64_t inode, size;
	struct stamp mtime, ctime, atime;
};

/* From a stat of the file or link itself, not of what a link leads to. */
void identity_of_stat(const struct stat *st, struct identity *ret_identity);

/* What is at (dir_fd, name), a link itself. Nothing there: 0 with mode 0. -errno. */
int identity_at(int dir_fd, const char *name, struct identity *ret_identity) MUST_USE;

/*
 * The same file with the same content, as far as can be told: all but atime and ctime. A rename changes the ctime, and
 * so does whatever is done to another name of the file; stage/transaction/known.h has those that we gave. Of
 * directories only type and inode count: their content is other entries.
 */
bool identity_equal(const struct identity *a, const struct identity *b);

/* Equal to the nanosecond: a file system with coarser times has cut both alike. */
bool stamp_equal(struct stamp a, struct stamp b);

/* As utimensat(2) wants it, whose errno says when a recorded number is out of range: nothing is checked here. */
struct timespec stamp_to_timespec(struct stamp stamp);
