/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Old sessions go by themselves: behind a run, at most once a day, `atoll-stage gc` is started in the background, at
 * the lowest priority and with bounded CPU time. What it removed is said before the next run. Nothing that nobody has
 * reviewed is removed so. ATOLL_GC=off keeps it from happening; ATOLL_GC=AGE says how old a session must be.
 */

#include "session/run-request.h"

/* Starts it where a day has passed since the last time; the first run of all only begins to count. Does not wait. */
void auto_gc(const struct run_request *request);

/* Says on stderr, once, what the last one removed. */
void daily_say(const struct run_request *request);
