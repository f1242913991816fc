/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The streams of the commands that a handle started: our ends go to the caller, or are read here and become OUTPUT
 * events, all of which come between STARTED and EXIT. Part of libatoll.
 */

#include "client/api/sandbox.h"

/* Our ends of pipes go into a record, once. streams: may be NULL. 0, or -ENOMEM. */
int streams_hand_out(struct streams *streams, struct atoll_record *record) MUST_USE;

/* STARTED: what is captured is read from now on. 0, or -errno. */
int streams_start(struct atoll_sandbox *sandbox, struct atoll_record *event) MUST_USE;

/* EXIT: what is left of its output is queued, and it has no streams any more. 0, or -ENOMEM. */
int streams_end(struct atoll_sandbox *sandbox, const struct atoll_record *event) MUST_USE;

/*
 * Queues one piece of what streams->fds[which] has (1 or 2). 1: something was there; 0: nothing now, or the end, where
 * it is closed. -ENOMEM.
 */
int output_read(struct atoll_sandbox *sandbox, struct streams *streams, int which) MUST_USE;

/* Queues all that is there of all commands: 0, or -ENOMEM. */
int output_drain(struct atoll_sandbox *sandbox) MUST_USE;
