/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A snapshot that a box has taken of its own sandbox, by `atoll snapshot` as one of its companions. Everything inside
 * stands still while that copies, which it asks for at the control socket as anybody does. What a snapshot is taken
 * for, and how often, is the caller's. Run by atoll-box.
 */

#include <stdbool.h>

#include "supervise/peer.h"

enum { SNAPSHOT_SAID_MAX = 512 };

struct snapshot_job {
	struct peer peer;
	int said_fd;             /* owned: a memory file, what it prints; FD_NONE: it does not run */
	/* Once it is over. name: of the snapshot; NULL: why says why there is none. Negative: the log failed. */
	int (*done)(void *context, const char *name, const char *why);
	void *context;
};

/* Nothing runs yet. done and context: borrowed. */
void snapshot_job_init(struct snapshot_job *job, struct run *run,
		       int (*done)(void *context, const char *name, const char *why), void *context);

/* From snapshot_job_start() until done is called, or snapshot_job_close(). */
bool snapshot_job_is_busy(const struct snapshot_job *job);

/*
 * Begins to take one that is not busy; job->done is called from the loop when it is over, after two minutes at the
 * latest. kind: the option that says what for. message: NULL: none. Negative: nothing runs.
 */
int snapshot_job_start(struct snapshot_job *job, const char *kind, const char *message) MUST_USE;

/* Ends what runs, without a word; it may be started again. */
void snapshot_job_close(struct snapshot_job *job);
