/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Bytes both ways between two sockets, once HTTP has nothing more to say (an upgraded connection). Each direction has
 * one buffer, which holds its reader up when it is full; an end of one side is passed on. Run by atoll-front.
 */

#include <stdbool.h>

#include "base/buf.h"
#include "supervise/loop.h"

struct tunnel;

struct tunnel_side {
	struct tunnel *tunnel;
	struct loop_source source;
	struct buf out;              /* to be written to it */
	bool is_read, is_shut;       /* it has said all; it was told that the other has */
};

struct tunnel {
	struct loop *loop;
	struct tunnel_side sides[2];
	void (*ended)(void *context); /* once, from the loop: nothing more will pass */
	void *context;
};

/*
 * Joins two sockets (borrowed, made non-blocking). What is in sides[i].out already (initialised by the caller) goes
 * first. Negative errno: they cannot be watched, and ended is not called.
 */
int tunnel_begin(struct tunnel *tunnel, struct loop *loop, int a, int b) MUST_USE;

/* Forgets both; the sockets are the caller's. */
void tunnel_done(struct tunnel *tunnel);
