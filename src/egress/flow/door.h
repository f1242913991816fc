/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Connections from inside, and where each was meant to go (door.c has how). Judges nothing: flow.h does. Runs in
 * atoll-egress.
 */

struct gate;
struct gate_route;

/* A note of the box: the connection with its source is started, or will be when it comes. Changes route. */
void door_route(struct gate *gate, struct gate_route *route);
