/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Sandboxes whose walls stand already and that wait for whom they are for (atoll_park). As many wait for a policy as
 * were wanted at once lately, within one bound for all; what nobody wanted for a while goes. They end with this
 * process. None is started while a client waits for an answer: starting one takes this thread half a millisecond, and
 * the machine some milliseconds of processor time. Runs in atolld.
 */

#include "service/launcher/call/daemon.h"

/* Those wait for so long without a creation, at most; then the pool is empty. */
enum { POOL_IDLE_MS = 120000 };

/* Frees all that wait, and the pool: they end with their handles. */
void pool_done(struct daemon *daemon);

/*
 * One that waits under this policy, taken for record (without what is settled at parking): its handle is the caller's.
 * NULL: there is none, or it could not be taken; one is started from the beginning then.
 */
atoll_sandbox *pool_take(struct daemon *daemon, const struct policy_found *found, const atoll_record *record);

/* A sandbox was wanted under this policy: has more of them wait. missed: there was none. */
void pool_want(struct daemon *daemon, const struct policy_found *found, bool missed);

/*
 * Starts what is missing, one after the other, and takes away what nobody wanted for long; when to call it again
 * (CLOCK_MONOTONIC; UINT64_MAX: never).
 */
uint64_t pool_tend(struct daemon *daemon);
