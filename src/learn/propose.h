/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The smallest policy that would have allowed what a session did, as text: `atoll policy learn`. Extends level none and
 * adds what was used and nothing else, each line with its evidence; never wider than the policy that the session ran
 * under. Generalised only where it says so. Pure but for the log that it reads. Run by atoll-learn.
 */

#include "base/buf.h"
#include "learn/observed.h"

enum {
	PROPOSE_THINGS_MAX = 16384,    /* different files, hosts, programs, … each */
	PROPOSE_SIBLINGS = 8,          /* files read in one directory that make it a rule for the directory */
	PROPOSE_REFUSED_SHOWN = 32,
	PROPOSE_MARGIN = 2,            /* a limit is so many times what was used */
};

/* What the session used of its limits, from its report; 0: not known. */
struct propose_usage {
	uint64_t memory_bytes, processes, cpu_ms, wall_ms;
};

struct propose_request {
	const struct policy *before;   /* that the session ran under; borrowed, as the next */
	const struct policy *base;     /* level none, for the same project */
	struct propose_usage usage;
	const char *session;           /* its id, for the text */
};

/*
 * Reads the log at the fd (borrowed) and appends the policy. 0; -ENODATA where nothing was started; -EOPNOTSUPP where
 * the session had the host's network, of which there is no record; -errno, -ENOMEM, the buffer's error.
 */
int propose(const struct propose_request *request, int log_fd, struct buf *out) MUST_USE;
