/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which layers are named, by whom, and what nobody names. A layer may go only when no chain and no snapshot of any
 * session names it; what cannot be read is taken to name everything. Which sessions are old is not decided here.
 * Run by atoll-stage.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "stage/layer/chain.h"

enum {
	STAGE_GC_SESSIONS_MAX = 1 << 20,
	STAGE_GC_GRACE_S = 600,      /* after stage_lock_touch() a session is left alone for so long */
};

struct stage_reference {
	char owner[SESSION_ID_SIZE]; /* whose chain or snapshot it is */
	struct stage_layer layer;
};

struct stage_references {
	struct stage_reference *items;
	size_t count, capacity;
	char unreadable[SESSION_ID_SIZE]; /* "" or: a session whose chain or snapshots cannot be read */
};

/* Reads all chains and snapshots of all sessions, and syncs them. Bounded; -errno with *err. */
int stage_references_load(int sessions_fd, struct stage_references *ret_references, struct err *err) MUST_USE;
void stage_references_done(struct stage_references *references);
#define cleanup_stage_references __attribute__((cleanup(stage_references_done)))

/* A session other than this one that stands on a layer of it; NULL: none does. */
const char *stage_references_user(const struct stage_references *references, const char *session);

/* Forgets what a session named, because it is gone. */
void stage_references_forget(struct stage_references *references, const char *session);

/*
 * Removes the layers of a session that nobody names. The caller holds the session (stage/snapshot/lock.h). *ret_layers
 * and *ret_bytes (may be NULL) grow. dry_run: counts layers only. Nothing is removed while something cannot be read, or
 * within the grace of stage_lock_touch().
 */
int stage_gc_layers(int sessions_fd, const char *session, const struct stage_references *references, bool dry_run,
		    uint64_t *ret_layers, uint64_t *ret_bytes) MUST_USE;

/* Whether somebody is about to build on the session (stage_lock_touch()). */
bool stage_gc_is_touched(int sessions_fd, const char *session);

/*
 * Keeps out the box (not with ret_box_fd NULL) and whoever would change what a session staged, until the fds are
 * closed. -EBUSY: somebody is at it; what is not there needs no lock.
 */
int stage_gc_claim(int sessions_fd, const char *session, int *ret_box_fd, int *ret_stage_fd) MUST_USE;

/* Whether something may stand on layers of the session: whether any were sealed. */
bool stage_gc_has_layers(int sessions_fd, const char *session);

/* Removes a session's directory whole. Its lock is held by the caller, and nobody else names its layers. */
int stage_gc_session(int sessions_fd, const char *session, uint64_t *ret_bytes) MUST_USE;
