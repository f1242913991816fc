/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Makes the mounted tree of a living session show what a snapshot of it holds, by what any program inside could do:
 * files are made under another name and renamed over the old one, so that who has that open keeps it. The caller holds
 * everything inside still, and has confined itself. Used by atoll-stage.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "stage/layer/layer.h"

struct stage_live_restore {
	int live_fd;                      /* borrowed: the tree as programs inside see it, O_RDONLY | O_DIRECTORY */
	const struct stage_stack *now;    /* borrowed, as `wanted`: with the live upper, the mask and the host */
	const struct stage_stack *wanted; /* the snapshot's layers, the mask and the host */
	uid_t uid;                        /* of the sandbox: whose all is that is made (for root) */
	gid_t gid;
	uint64_t deadline_ns;             /* CLOCK_MONOTONIC */
	/* Results. */
	uint64_t written, removed, linked;
};

/*
 * 0, and both show the same; else some of it was done: -ETIME after the deadline, -EBUSY where a file is mounted in the
 * sandbox that would have to be replaced, -ENOSPC, -EDQUOT, -E2BIG, -errno.
 */
int stage_live_restore(struct stage_live_restore *restore) MUST_USE;
