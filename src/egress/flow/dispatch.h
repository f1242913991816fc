/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the box says: one row for each frame, with the states in which it may come and how large it may be. Sends
 * nothing but the answers to it. Runs in atoll-egress.
 */

#include "base/cleanup.h"

struct gate;

/*
 * Takes all frames that are there, up to a batch. Positive: there may be more; 0 or -ECONNRESET: the box has gone;
 * other negative: what came breaks the protocol, or cannot be done.
 */
int dispatch_box(struct gate *gate) MUST_USE;
