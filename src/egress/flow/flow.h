/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The connections that go out, each from its judgement to its end (flow.c has how). Where one was meant to go is found
 * in door.h. Runs in atoll-egress.
 */

#include <stdbool.h>
#include <stdint.h>

struct gate;
struct gate_route;

/* One connection from inside, accepted. Takes fd; route is borrowed for the call. */
void flow_start(struct gate *gate, int fd, const struct gate_route *route);

/* The answer of the box to GATE_OPEN of this id. One that is gone is nobody's. */
void flow_go(struct gate *gate, uint32_t id, bool is_granted);

/*
 * Another policy is in force: ends what it does not allow, or would have opened in another way, and counts the rest
 * against its limits. How many were ended.
 */
uint32_t flows_judge_again(struct gate *gate);
