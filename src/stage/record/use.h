/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who works on a session's stage directory, and who may take it away. Every command that changes something of it holds
 * a shared lock (flock) of the directory itself; the end of a run and gc, which remove it whole, an exclusive one. So
 * an apply that is at work when its run ends, or when gc comes by, keeps its journal and what it replaced. Which
 * command may change what beside another is not decided here (lock.h, transaction.h).
 */

#include "base/cleanup.h"

/*
 * Uses the directory until stage_fd is closed; what has an exclusive lock is waited for, up to 10 s (-EBUSY). -ENOENT:
 * by now it is not the stage directory of that session any more.
 */
int stage_use(int stage_fd, const char *session) MUST_USE;

/* Takes it for oneself, to remove it: -EBUSY where somebody uses it for longer than patience_ms. */
int stage_claim(int stage_fd, unsigned patience_ms) MUST_USE;

/* Gives it free again, without closing it. */
void stage_release(int stage_fd);
