/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * RESOURCE MONITOR of staged changes: `resources.disk` and `resources.inodes` for the live layers, which lie on a file
 * system that others use as well. A look at the file system's free space is cheap and says when the limit could have
 * been passed; then the layers are counted, and only that count decides. Between two looks the sandbox can write
 * more than the limit; looks come closer together as the limit comes nearer, and far apart while nothing runs inside.
 * The run ends only where the layers grow all the same, by many small files or a program that raises its own limit,
 * or where there are too many files. Run by atoll-box.
 */

#include <stdbool.h>
#include <stdint.h>

#include "stage/record/record.h"

enum { DISK_REST_MS = 20000 };

struct disk_watch {
	uint64_t limit_bytes, limit_inodes;    /* NUM_UNLIMITED: none */
	uint64_t free_bytes, free_inodes;      /* of the file system, when the layers were last counted */
	uint64_t counted_bytes, counted_inodes; /* in the layers then */
	uint64_t look_ns;                      /* when to look again; UINT64_MAX: never */
	uint64_t count_ns;                     /* when to count at the latest, whatever the look says */
	bool is_resting;                       /* the next look comes late */
	bool is_full;                          /* the bytes are used up, and nothing is to grow */
	uint64_t end_bytes;                    /* then: beyond this the run ends; UINT64_MAX: not known yet */
};

/*
 * What a look found. DISK_FULL: the bytes are used up just now, and files must not grow any more; DISK_AGAIN: there is
 * room again, they may; DISK_BYTES, DISK_INODES: the run must end.
 */
enum disk_hit { DISK_FINE, DISK_FULL, DISK_AGAIN, DISK_BYTES, DISK_INODES };

/* Nothing is watched where no limit is set. stage_fd and the record must outlive the watch. */
int disk_watch_init(struct disk_watch *watch, uint64_t limit_bytes, uint64_t limit_inodes, int stage_fd,
		    uint64_t now_ns) MUST_USE;

/*
 * Looks, where it is time to. init_pid: whose processes may hold files that have no name any more. An enum
 * disk_hit, or -errno where the file system does not answer.
 */
int disk_watch_check(struct disk_watch *watch, int stage_fd, const struct stage_record *record, pid_t init_pid,
		     uint64_t now_ns) MUST_USE;

/*
 * Nothing inside runs, so nothing writes: the next look may come DISK_REST_MS after now_ns, and none counts, unless the
 * free space says so. Nothing changes while the bytes are used up.
 */
void disk_watch_rest(struct disk_watch *watch, uint64_t now_ns);

/* Something may write from now on: looks come as often as ever. Nothing changes where there was no rest. */
void disk_watch_wake(struct disk_watch *watch, uint64_t now_ns);

/* While the bytes are used up: how large a file may still become. A log or a lock is written, a download is not. */
uint64_t disk_full_size(uint64_t limit_bytes);
