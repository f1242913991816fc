/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Joins the layers of a session's chain into one, and drops paths from what a session staged. Layers are never changed:
 * a new one takes their place in the chain, and those that nothing names any more are for gc. Run by atoll-stage.
 */

#include <stddef.h>
#include <stdint.h>

#include "stage/snapshot/lock.h"

/*
 * Replaces the chain by one layer with the same content. 0; 1: there was nothing to join. Nothing may run in the
 * session. A crash leaves the old chain or the new one.
 */
int stage_flatten(struct stage_lock *lock, struct err *err) MUST_USE;

/* A path of one tree to drop; "" is the whole tree. */
struct stage_drop {
	size_t tree;
	const char *path;            /* relative to the tree, normalised; borrowed */
};

/*
 * Takes these paths and all below them out of what is staged; live uppers are sealed for that. *ret_dropped is how many
 * staged entries were found there. -EINVAL with *err for a path inside a directory that was deleted or
 * replaced as a whole: it has no state of its own.
 */
int stage_discard_paths(struct stage_lock *lock, const struct stage_drop *drops, size_t count, uint64_t *ret_dropped,
			struct err *err) MUST_USE;

/*
 * Takes everything out: the chain becomes empty and the live uppers new. What they held is removed; snapshots stay,
 * and layers that others name.
 */
int stage_discard_all(struct stage_lock *lock, struct err *err) MUST_USE;
