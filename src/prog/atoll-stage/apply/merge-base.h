/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What both sides of a conflict began from. Nobody keeps a copy of the host's file when a run begins, so there is one
 * source: git's index, where it is older than the run. A child that is forked before atoll-stage confines itself runs
 * git for that, in a confinement of its own: it may read the staged trees and the system's programs, and write nothing.
 * It gets the path that is asked for, and hands over the bytes.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

struct base {
	int socket_fd;       /* owned; FD_NONE: there is none to ask */
	bool is_without_git; /* because git(1) is not installed */
};

#define BASE_NONE ((struct base){ .socket_fd = FD_NONE })

/* Starts the child. tree_fds: what it may read. 0 also without git(1). */
int base_start(const int *tree_fds, size_t count, struct base *ret_base, struct err *err) MUST_USE;
void base_stop(struct base *base);

/*
 * The bytes that git's index had for an absolute path before start_ns, owned by the caller (free()). -ENOENT: none are
 * known; -EFBIG beyond max; -EPIPE: the child is gone.
 */
int base_load(struct base *base, const char *path, uint64_t start_ns, size_t max, char **ret_bytes,
	      size_t *ret_size) MUST_USE;
