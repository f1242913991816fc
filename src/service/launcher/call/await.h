/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who waits for what was asked of libatoll. An answer comes as an event of the sandbox's handle; where that ends, all
 * who wait are told ATOLL_E_GONE. Runs in atolld.
 */

#include "service/launcher/call/call.h"

typedef void await_done(struct sandbox *sandbox, struct call *call, const struct outcome *outcome);

/*
 * Behind a request with a ticket: r is what it returned, error what it filled. Where r is negative, `done` is called at
 * once with it. call may be NULL.
 */
void await_answer(struct sandbox *sandbox, struct call *call, int r, uint64_t ticket, const struct atoll_error *error,
		  await_done *done);

/* The answer to a request, an event DONE: who waits for its ticket is called, and waits no longer. */
void await_event(struct sandbox *sandbox, const atoll_record *event);

/* The handle has ended: all who wait for it are told so. */
void await_gone(struct sandbox *sandbox);

/* Answers the call with 204, or with what failed: for requests that have no values to give back. */
void await_reply(struct sandbox *sandbox, struct call *call, const struct outcome *outcome);
