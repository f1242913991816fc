/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where something inside asks before it hits the wall: /run/atoll/ask.sock. The name is there from the start, the
 * socket behind it and atoll-desk, which reads it, from the first connection on. What they pass on is judged in
 * requests.c. Run by atoll-box.
 */

#include <stdbool.h>

#include "policy/policy.h"

struct box;
struct desk;

/* See watch_handlers.on_unheard: whether there is a socket now where there was a name only. */
bool desk_open(void *context, const char *path);

/* The sandbox has ended. */
void desk_close(struct box *box);
