/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What comes to a handle: messages of the box, captured output, and what jobs bring. It becomes events in the handle's
 * queue, and the answer that a request waits for. Part of libatoll.
 */

#include "client/api/sandbox.h"

/*
 * Waits for timeout_ms (-1: for ever), takes one message of the box or one piece of anything else that is there, and
 * queues what came of it; the answer to answer->ticket goes there (answer: NULL: nobody waits). 1: something was there;
 * 0: nothing. -errno: no memory, or epoll_wait(2) failed.
 */
int sandbox_step(struct atoll_sandbox *sandbox, struct answer *answer, int timeout_ms) MUST_USE;
