/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How programs inside ended: every process that was seen to exec is held by pidfd, so that its exit status
 * reaches the log whoever its parent is. atoll-init knows only its own children. Run by atoll-box.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "supervise/loop.h"

enum { PROCESSES_MAX = 1024, PROCESSES_BUCKETS = 256 };

struct process_end {
	pid_t pid;
	bool has_status;   /* the kernel told (PIDFD_INFO_EXIT, Linux 6.15) */
	int code;	   /* exit code, or -1 */
	int signal_number; /* or 0 */
	uint64_t wall_us;  /* since its first exec */
};

struct processes {
	struct loop *loop;
	struct process *buckets[PROCESSES_BUCKETS];
	size_t count, peak;
	/* Negative ends the sandbox. */
	int (*on_end)(void *context, const struct process_end *end);
	void *context;
};

/* Follows pid (as the host sees it) until it ends; nothing happens for one that is followed already, or
 * beyond the bounds. */
int processes_follow(struct processes *processes, pid_t pid) MUST_USE;

/* Everything inside is dead: tells the ends that were not told yet, and forgets all. The first negative of
 * on_end. */
int processes_done(struct processes *processes) MUST_USE;
