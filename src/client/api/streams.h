/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The streams of a command as its record names them: descriptors, pipes of our own, or a pty. It reads and writes
 * nothing. Part of libatoll.
 */

#include "client/api/sandbox.h"
#include "wire/field.h"

struct stream_plan {
	int fds[3];              /* what the command gets: FD_NONE, borrowed from the record, or in theirs */
	int theirs[3];           /* owned: the other ends of our pipes */
	uint64_t pty;            /* rows << 16 | columns; 0: none */
	unsigned lasting;        /* bits 1 << number of those that outlive us; of a pty: all */
	struct streams *ours;    /* owned; NULL: nothing is left here */
};

/* Keys that stream_plan_make() reads: they do not go into the request. */
extern const char *const stream_keys[];

/* 0, or ATOLL_E_*; stream_plan_done() in any case. */
int stream_plan_make(struct stream_plan *plan, const struct atoll_record *record, struct atoll_error *error) MUST_USE;
void stream_plan_done(struct stream_plan *plan);
