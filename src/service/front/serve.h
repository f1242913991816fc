/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where libmicrohttpd meets the handlers: connections, heads of requests, bodies, the end of each. It decides which
 * handler a request is for and refuses what none may see; what a request means it does not know. Run by atoll-front.
 */

#include <stdint.h>

#include "base/cleanup.h"

struct front;

/* Starts to listen on the sockets of the front, in its loop. Nothing is read from a client yet. Negative errno. */
int serve_begin(struct front *front) MUST_USE;

/* Runs what libmicrohttpd has to do now; in how many ms it wants to be run again, at most max. */
int serve_turn(struct front *front, int max_ms);

/* Ends connections whose head of a request does not come. */
void serve_tick(struct front *front);
