/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The folder: the state of a session as a chain of sealed layers, under its lock (lock.h). Names for states (here),
 * joining and dropping (flatten.h, merge.h), which layers nobody needs (gc.h), and a directory that is renamed in a
 * live tree (move-tree.h).
 *
 * Snapshots of what a session staged: a name for a chain of sealed layers. Taking one while nothing runs, going back to
 * one and building on one cost the same whatever the trees and the layers hold. Used by atoll, and by atoll-stage for
 * the copy of a running session.
 */

#include <stddef.h>
#include <stdint.h>

#include "stage/snapshot/lock.h"

enum {
	STAGE_SNAPSHOTS_MAX = 4096,
	STAGE_AUTO_KEPT = 50,        /* snapshots AUTO-N that stay */
	STAGE_TURNS_KEPT = 30,       /* and TURN-N */
	STAGE_SNAPSHOT_NAME_SIZE = STAGE_SNAPSHOT_NAME_MAX + 1,
};

#define STAGE_AUTO_PREFIX "auto-"
#define STAGE_TURN_PREFIX "turn-"
#define STAGE_BEFORE_RESTORE_PREFIX "before-restore-"
#define STAGE_NAMELESS_PREFIX "snapshot-"
#define STAGE_FORK_PREFIX "fork-"

/* The next free PREFIXn of the session, counting on from the greatest, in out. */
int stage_snapshot_next_name(const struct stage_lock *lock, const char *prefix, char out[STAGE_SNAPSHOT_NAME_SIZE],
			     struct err *err) MUST_USE;

/* Whether the name is free and may be taken: 0, or -EEXIST or -EINVAL with *err. */
int stage_snapshot_check_name(const struct stage_lock *lock, const char *name, struct err *err) MUST_USE;

/*
 * Seals what was written since the last seal, if anything was, and gives the chain this name. Nothing runs in the
 * session. message: NULL or at most STAGE_MESSAGE_MAX bytes. The chain is in lock->chain.
 */
int stage_snapshot_seal(struct stage_lock *lock, const char *name, const char *message, struct err *err) MUST_USE;

/*
 * Copies the live uppers of a session that stands still into a new layer, *ret_layer, which nothing names yet.
 * stage_snapshot_name_copy() does that, after the caller has made sure that all stood still until the end.
 */
int stage_snapshot_copy(const struct stage_lock *lock, uint32_t *ret_layer, struct err *err) MUST_USE;
int stage_snapshot_name_copy(const struct stage_lock *lock, uint32_t layer, const char *name, const char *message,
			     struct err *err) MUST_USE;

/* Removes a layer of the locked session itself that nothing names. */
int stage_snapshot_drop_copy(const struct stage_lock *lock, uint32_t layer) MUST_USE;

/*
 * Makes a snapshot the state of the session. What was the state is named before-restore-N first, and that name is in
 * before ("" where the state was the snapshot's already). Nothing runs in the session.
 */
int stage_snapshot_restore(struct stage_lock *lock, const char *name, char before[STAGE_SNAPSHOT_NAME_SIZE],
			   struct err *err) MUST_USE;

/*
 * Gives the chain of another session, one that was forked from this one, a name in this session, so that
 * stage_snapshot_restore() can make it its state. The caller holds the other one too. -EEXIST, -EINVAL with *err.
 */
int stage_snapshot_take_over(const struct stage_lock *lock, const struct stage_chain *chain, const char *name,
			     const char *message, struct err *err) MUST_USE;

/* Whether the state is exactly what the snapshot holds, nothing written since: 1, 0, -errno with *err. */
int stage_snapshot_is_current(const struct stage_lock *lock, const char *name, struct err *err) MUST_USE;

/* The chain of a snapshot. -ENOENT with *err. */
int stage_snapshot_load(const struct stage_lock *lock, const char *name, struct stage_chain *ret_chain,
			struct err *err) MUST_USE;

/* Forgets a snapshot; the layers that it alone named are for gc. -ENOENT with *err. */
int stage_snapshot_remove(const struct stage_lock *lock, const char *name, struct err *err) MUST_USE;

struct stage_snapshot {
	char name[STAGE_SNAPSHOT_NAME_SIZE];
	struct stage_chain chain;
};

/* All of them, oldest first; owned by the caller (free()). Files that are none are left out. */
int stage_snapshot_list(const struct stage_lock *lock, struct stage_snapshot **ret_list, size_t *ret_count,
			struct err *err) MUST_USE;

/* Forgets the oldest snapshots PREFIXn beyond keep. The number of them, or -errno with *err. */
int stage_snapshot_thin(const struct stage_lock *lock, const char *prefix, size_t keep, struct err *err) MUST_USE;
