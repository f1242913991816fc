/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The socket between box and gate, as both halves of it use it: gate.c, which starts the gate and tells it things, and
 * gate-hear.c, which takes what it says. Only for these two. Run by atoll-box.
 */

#include <stddef.h>

#include "base/cleanup.h"

struct box;

enum gate_link_state { LINK_IDLE, LINK_STARTING, LINK_SERVING, LINK_GONE };

/*
 * There is no network from now on, for this reason; the first one stays. NULL: nothing lives inside any more.
 * Negative: the log failed.
 */
int gate_lose(struct box *box, const char *why) MUST_USE;

/*
 * Sends the frame in box->run.out; r: what its end gave. The gate gets copies of the descriptors. Where it
 * does not listen it is ended, and with it the network. Negative: the log failed.
 */
int gate_send(struct box *box, int r, const int *fds, size_t fd_count) MUST_USE;

/* Takes one frame: what frame_dispatch() returns (wire/frame.h). */
int gate_hear_frame(struct box *box) MUST_USE;

/* The same. 1: it said something; 0: nothing now, or it is gone; negative: the log failed. */
int gate_hear(struct box *box) MUST_USE;
