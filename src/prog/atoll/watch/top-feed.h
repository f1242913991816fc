/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What `atoll top` does while atoll-top draws: finds the sessions that run, asks their boxes, hands on what they answer
 * without a look into it, and does what the person asks for. Waits for no box: one that does not answer is told so.
 */

#include <limits.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"

struct top_feed_options {
	int screen_fd;                /* to atoll-top; borrowed */
	const char *state;            /* the state directory */
	const char *programs;         /* where atoll-log is */
	unsigned pace_ms;             /* from one round to the next, until atoll-top wants another */
};

/* Until atoll-top has gone: 0. Negative with *err: nothing can be told any more. */
int top_feed(const struct top_feed_options *options, struct err *err) MUST_USE;
