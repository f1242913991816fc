/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A checkpoint that something inside asks for at ask.sock, as the hooks of agents do at each turn: `atoll snapshot
 * --turn` takes it, in a process outside, as for a person. It can do no harm: one at a time, with a pause that grows
 * with what the last one cost; the number and the bytes that stay are bounded by atoll-stage, which removes none that a
 * person named. Run by atoll-box.
 */

#include <stdint.h>

#include "base/cleanup.h"

struct access_gate;

/* Nothing is being taken yet; gate->run is set. */
void access_checkpoint_init(struct access_gate *gate);

/* The request id is answered now or later, by DESK_ANSWER. text: what it is for, hostile. Negative: the log failed. */
int access_checkpoint_take(struct access_gate *gate, uint32_t id, const char *text) MUST_USE;

/* Ends the one at work, whose request is not answered any more. */
void access_checkpoint_done(struct access_gate *gate);
