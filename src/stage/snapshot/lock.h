/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A session's stage directory, opened to be changed: what it stages, the chain that it stands on, and a lock that keeps
 * every other change of layers and snapshots out. Used by atoll for what is O(1), and by atoll-stage.
 */

#include <stdbool.h>

#include "base/err.h"
#include "stage/layer/chain.h"
#include "stage/record/record.h"

#define STAGE_FILE_LOCK "lock"

/* In the session's directory: what its box holds a lock of (session/store.h). */
#define STAGE_BOX_LOCK "audit.jsonl"

struct stage_lock {
	int sessions_fd;             /* owned: STATE/sessions */
	int stage_fd;                /* owned: sessions/ID/stage */
	int lock_fd;                 /* owned: flock held */
	char session[SESSION_ID_SIZE];
	struct stage_record record;
	struct stage_chain chain;    /* as it is on disk */
	bool is_live;                /* its box lives: only what leaves chain and live uppers alone may be done */
};

#define STAGE_LOCK_NONE ((struct stage_lock){ .sessions_fd = FD_NONE, .stage_fd = FD_NONE, .lock_fd = FD_NONE })

/*
 * Opens session ID below state_dir and takes its lock; another change is waited for up to 10 s, then -EBUSY.
 * -ENOENT with ERR_STATE: the session stages nothing. *err says what is wrong.
 */
int stage_lock_open(const char *state_dir, const char *session, struct stage_lock *ret_lock, struct err *err) MUST_USE;
void stage_lock_done(struct stage_lock *lock);
#define cleanup_stage_lock __attribute__((cleanup(stage_lock_done)))

/* -EBUSY with *err where the session's box lives. what: "restore", … */
int stage_lock_need_idle(const struct stage_lock *lock, const char *what, struct err *err) MUST_USE;

/* Whether layers of it can be put upon one another: -EOPNOTSUPP with *err where fuse-overlayfs made them. */
int stage_lock_need_layers(const struct stage_lock *lock, const char *what, struct err *err) MUST_USE;

/*
 * Tells gc that somebody is about to build on layers of this session: for a while none of them is removed. For the
 * moment between reading a chain and the new session's own chain being on disk.
 */
int stage_lock_touch(const struct stage_lock *lock) MUST_USE;
