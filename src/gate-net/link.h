/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The socket between box and gate, and what the box says on it; what the gate says, dispatch.c takes. Nothing here
 * waits, fails or calls back: a gate that does not listen is marked as lost, and ended in the next turn of the loop
 * (supervise/peer.h). Run by atoll-box.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "wire/frame.h"

struct net_gate;
struct decision;

/* Why there is no network any more, for the report (copied); the first reason stays. */
void gate_name_failure(struct net_gate *gate, const char *why);

/* There is no network from now on, for this reason (copied); the first one stays. Nothing where it is gone already. */
void gate_mark_lost(struct net_gate *gate, const char *why);

/* Forgets the frames that its socket had no room for. Nothing where there are none. */
void gate_forget_unsent(struct net_gate *gate);

/* Sends them, to a struct net_gate: see struct peer_kind. 0. */
int gate_has_room(void *net_gate);

/*
 * Sends the frame in the run's out, or keeps it until there is room, at most 8 MiB of them; r: what its end gave. The
 * gate gets copies of the descriptors, at most one.
 */
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

/* Headers to put into requests (owner-headers.h). */
void gate_say_headers(struct net_gate *gate, const char *const *triples);

/* Another policy (policy-change.h), as bytes of a snapshot. */
void gate_say_policy(struct net_gate *gate, const void *bytes, size_t size);

/* What it may say (dispatch.c), to a struct net_gate. */
enum { GATE_RULE_COUNT = 15 };
extern const struct frame_rule gate_rules[GATE_RULE_COUNT];
