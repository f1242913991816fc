/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Sandboxes of the code interpreter whose drivers run already and that wait for whom they are for: that of Python, and
 * those of languages that were wanted lately. Each is for one creation and is a sandbox like any
 * other: nothing in it is shared with another one, and no driver is forked from another. They are made under the
 * policy that was wanted last, as the pool's are; who sets variables for a whole sandbox gets none. They end by
 * themselves soon after this process dies. Runs in atolld.
 */

#include "service/launcher/call/daemon.h"

/* Those wait for so long, and have a deadline somewhat behind. */
enum { WARM_AGE_MS = 120000, WARM_DEADLINE_MS = 150000 };

/* At the end of the daemon: ends all that wait here, functions, and those of the pool. */
void warm_done(struct daemon *daemon);

/* The id of one that waits under the policy of this id, for the sandbox that shall have it. False: there is none. */
bool warm_find(struct daemon *daemon, const char *policy, char ret_id[CREDENTIAL_ID_SIZE]);

/* Takes the one of a sandbox's id: its handle is the caller's, and the driver's streams the sandbox's. NULL: none. */
atoll_sandbox *warm_take(struct daemon *daemon, struct sandbox *sandbox);

/* One was wanted under this policy: has more of them wait. missed: there was none. */
void warm_want(struct daemon *daemon, const struct policy_found *found, bool missed);

/* Ends what waited for long; when to call it again (CLOCK_MONOTONIC; UINT64_MAX: never). */
uint64_t warm_tend(struct daemon *daemon);
