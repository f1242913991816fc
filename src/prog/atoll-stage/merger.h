/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The child that runs git for merging.c: one request, one answer. It is confined before it hears anything, and knows
 * nothing of sessions: it gets texts in memory and the path that they belong to.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

enum { MERGER_PATH_MAX = 4096, MERGER_TEXT_MAX = 8 << 20, MERGER_FDS = 3 };

enum merger_answer {
	MERGER_CLEAN,
	MERGER_MARKED,     /* lines of both sides stand in it */
	MERGER_NONE,       /* git could not: binary, too long, too slow */
};

/* Followed in the message by the absolute path of the file, with its NUL. fds: host, staged, result (to be written). */
struct merger_request {
	uint64_t start_ns; /* of the run: an index that was changed since is no base */
};

/* Starts it; the socket, owned by the caller. tree_fds: what it may read. -ENOENT with *err: there is no git(1). */
int merger_start(const int *tree_fds, size_t count, struct err *err) MUST_USE;
