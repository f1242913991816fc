/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What follows when the disk limit of staged changes is reached: nothing inside may grow until there is room again, and
 * where that does not help the run ends. disk.h counts and decides; this does it. Runs in atoll-box.
 */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "build/disk-quota.h"

struct run;
struct staging;
struct watch_file;

struct disk_full {
	struct run *run;               /* both borrowed */
	const struct staging *staging;
	struct disk_watch watch;
	char root[PATH_MAX];           /* the system of the session's own; "": the machine's */
	uint32_t episodes;             /* how often it was full */
};

/*
 * Watches the limits of the run's policy from now on (now_ns: CLOCK_MONOTONIC). -errno of statfs(2) where the file
 * system cannot be watched.
 */
int disk_full_init(struct disk_full *disk, struct run *run, const struct staging *staging, uint64_t now_ns) MUST_USE;

/* Looks, where it is time to. 0, also where the run was ended; negative: the log failed, or nothing can be counted. */
int disk_supervise(struct disk_full *disk, uint64_t now_ns) MUST_USE;

/* Whether a mediated call would make something in a staged tree that is full: it is refused with ENOSPC. */
bool disk_refuses(const struct disk_full *disk, const struct watch_file *event);
