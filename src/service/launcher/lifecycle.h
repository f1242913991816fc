/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A sandbox from its creation to its end. What is about to be is written into the database first, so that a daemon that
 * dies in the middle finds out at its next start what was meant. Runs in atolld.
 */

#include "service/launcher/call/await.h"

/* The name of the snapshot that a sandbox begins with again which was paused without its memory. */
#define LIFECYCLE_STORED "stored"

/*
 * Makes the sandbox of a call and answers it with status once it lives, or says why not. made: what it was asked for
 * with, taken; timeout_ms: its time.
 */
void lifecycle_create(struct call *call, struct kept *made, const struct origin *origin, uint64_t timeout_ms);

/*
 * What came of a creation, for the call that wanted it: it lives, or code (ATOLL_E_*) and why it does not. The call is
 * answered when all that it wanted is known, and freed.
 */
void lifecycle_created(struct sandbox *sandbox, struct call *call);
void lifecycle_failed(struct call *call, int code, const char *what, const char *hint);

/*
 * The same of one that could not even be started; errnum: an errno, or 0. Where the machine lacks processes, memory,
 * descriptors or disk for it, the answer says so and when to try again (503, 507): it is no fault of the request.
 */
void lifecycle_not_started(struct call *call, int code, int errnum, const char *what, const char *hint);

/*
 * One out of the pool was given up when it was taken, since the machine changed meanwhile: starts it from the
 * beginning. The call that waits for it is answered then, or at once where that fails too.
 */
void lifecycle_start_anew(struct sandbox *sandbox);

/* Its events come from now on; the handle is taken. -errno: and it was freed. */
int lifecycle_adopt(struct sandbox *sandbox, atoll_sandbox *handle) MUST_USE;

/* Ends it for good; the call, if there is one, is answered when nothing is left. */
void lifecycle_kill(struct sandbox *sandbox, struct call *call);

/* It has this long from now on, 0: for ever; also when this process is dead. call may be NULL. */
void lifecycle_set_time(struct sandbox *sandbox, struct call *call, uint64_t timeout_ms, await_done *done);

/* Writes its row. 0, or -EIO: what it speaks of must not be done. */
int lifecycle_store(struct sandbox *sandbox) MUST_USE;

/* Out of the registry and of the database; its handle is released. */
void lifecycle_forget(struct sandbox *sandbox);

/* Tells the front what became of a sandbox; ended: why, of SERVICE_GONE alone. */
void lifecycle_tell(struct sandbox *sandbox, enum service_event event, const char *ended);

enum lifecycle_detail {
	DETAIL_LISTED,
	DETAIL_WHOLE,            /* with its network */
	DETAIL_WITH_TOKENS,      /* and what lets its owner use what is inside */
};

/* Appends the values that the protocol has of a sandbox. */
void lifecycle_describe(const struct sandbox *sandbox, struct buf *out, enum lifecycle_detail detail);

/* The policy of the sandbox's key under the network that it has now, or shall have (network not NULL). */
int lifecycle_policy(struct sandbox *sandbox, const struct service_message *network, struct policy_found *ret_found,
		     struct err *err) MUST_USE;

/* Milliseconds since 1970. */
uint64_t lifecycle_now_ms(void);

/* Whether the time of a sandbox is over by a pause. */
bool lifecycle_is_auto_pause(const struct sandbox *sandbox);

/* This process lets go of it: it goes on. */
void lifecycle_let_go(struct sandbox *sandbox);

/* Has the daemon look at it when its time is over. */
void lifecycle_wake(struct sandbox *sandbox);

/* It has ended, and what it staged is kept: nothing runs any more. */
void lifecycle_put_away(struct sandbox *sandbox);

/* It could not begin again: it is stored as before. */
void lifecycle_store_again(struct sandbox *sandbox);

/* Begins a stored sandbox anew from what it staged; the call is answered with 201 once it lives. */
void lifecycle_begin_again(struct sandbox *sandbox, struct call *call, uint64_t timeout_ms);
