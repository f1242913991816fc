/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The socket between box and gate, and what the box says on it; what the gate says, dispatch.c takes. Nothing here
 * waits, fails or calls back: a gate that does not listen is marked as lost, and gate_check() ends it in the same turn
 * of the loop. Run by atoll-box.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct net_gate;
struct decision;
struct net_gate;

enum gate_link_state {
	LINK_IDLE,     /* no gate was needed yet */
	LINK_STARTING, /* it does not answer yet; it can be told things */
	LINK_SERVING,
	LINK_LOST,     /* there is no network any more, which gate_check() has to see */
	LINK_GONE,
};

/* There is no network from now on, for this reason (copied); the first one stays. Nothing where it is gone already. */
void gate_mark_lost(struct net_gate *gate, const char *why);

/* Sends the frame in the run's out; r: what its end gave. The gate gets copies of the descriptors. */
void gate_send(struct net_gate *gate, int r, const int *fds, size_t fd_count);

/* Whether something can be said to it. */
bool gate_is_there(const struct net_gate *gate);

/* Whether it is there, or would be started; what is sent before waits in the socket. */
bool gate_can_hear(const struct net_gate *gate);

/* What becomes of a connection (GATE_OPEN), and of a request that was asked about (GATE_ASK). */
void gate_answer(struct net_gate *gate, uint32_t id, bool is_granted);
void gate_answer_request(struct net_gate *gate, uint32_t id, const struct decision *decision);

/* How long nothing new is let out, after refusals of the network's or of any gate's (supervise/rate.h); 0: it is. */
uint64_t gate_pause_left_ms(const struct net_gate *gate);

/* Tells it how long that is. */
void gate_pause(struct net_gate *gate);

/* Asks for moved_in and moved_out, unless that was asked already; they come later. */
void gate_measure(struct net_gate *gate);

/* Whether anybody is asked, where that is new to it. After gate_is_there(). */
void gate_say_asking(struct net_gate *gate, bool is_on);

/* Another policy (policy-change.h), as bytes of a snapshot. */
void gate_say_policy(struct net_gate *gate, const void *bytes, size_t size);

/* Takes one frame: what frame_dispatch() returns (wire/frame.h). */
int gate_hear_frame(struct net_gate *gate) MUST_USE;

/* The same. 1: it said something; 0: nothing now, or it is lost; negative: the log failed. */
int gate_hear(struct net_gate *gate) MUST_USE;
