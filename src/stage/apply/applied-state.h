/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the applies and undos of a session left on the host, from their journals: a file that is exactly as we left it
 * was not changed by anybody else, whatever its ctime says. For the judgement of changes
 * (stage_change_options.is_own).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/cleanup.h"

struct applied_state;
struct stage_record;

/*
 * Reads all journals of the session, which began at start_ns (stage_record_start_ns()). One that is damaged vouches for
 * nothing.
 */
int applied_load(int stage_fd, uint64_t start_ns, struct applied_state **ret_left) MUST_USE;

/*
 * What undos of all sessions gave back to the trees of this one, below sessions_fd: it has new ctimes and is what was
 * there at the start all the same. Of an apply and its undo that both came after the start; of a directory only where
 * all of it was taken back, and nobody else wrote there in between. Asked with applied_is_own(). -errno.
 */
int applied_load_restored(int sessions_fd, const struct stage_record *record, uint64_t start_ns,
		       struct applied_state **ret_left) MUST_USE;
void applied_free(struct applied_state *left);

/*
 * Whether a conflict at path was settled for the host, or by a merge, and both sides are as they were then. NULL for a
 * side that is not there. left may be NULL.
 */
bool applied_is_settled(const struct applied_state *left, size_t tree, const char *path, const struct stat *host,
		     const struct stat *staged);

/*
 * Whether the host's entry at path is what the session itself left there, and is either what was staged or what was
 * there at the start (the outcome of a merge is neither). left may be NULL.
 */
bool applied_is_own(const struct applied_state *left, size_t tree, const char *path, const struct stat *host);
