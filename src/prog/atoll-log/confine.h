/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * atoll-log gives up what it does not need before it reads a log: the bytes in it were chosen by the agent, and they go
 * through a JSON parser. What it needs is open by then, so afterwards it can open nothing, start nothing,
 * and reach no network.
 */

#include "base/cleanup.h"
#include "base/err.h"

/* One way: no_new_privs, rlimits, Landlock (all denied), seccomp. Must come behind every open. */
int confine_self(struct err *err) MUST_USE;
