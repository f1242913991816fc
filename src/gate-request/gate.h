/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where something inside asks before it hits the wall: /run/atoll/ask.sock. The name is there from the start, the
 * socket behind it and atoll-desk, which reads it, from the first connection on. What they pass on is judged by the
 * policy in judge.c and goes to the one queue of questions; a capability token goes to atoll-token first (token.h). Run
 * by atoll-box.
 */

#include <stdbool.h>

struct access_gate;
struct queue;
struct run;
struct runtime_mounts;

/*
 * Whether a connection to this socket, on which nobody listens, is one to the desk. Whatever way the caller names it:
 * in a place of its own it gets what it has there.
 */
bool access_gate_is_wanted(const struct run *run, const char *path);

/*
 * Makes the socket where there was a name only. What is given is borrowed for its life; *ret_gate is owned by the
 * caller also where nobody can listen there (false), and stays NULL where memory is short.
 */
bool access_gate_open(struct access_gate **ret_gate, struct run *run, struct runtime_mounts *mounts,
		      struct queue *queue);

/* The sandbox has ended; gate may be NULL. */
void access_gate_close(struct access_gate *gate);
