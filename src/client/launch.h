/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How a process becomes a sandbox's supervisor (the box): what the user is told before, the detaching, and the one
 * line when it failed. `atoll run` calls it in its own process: another program for the same privilege would cost
 * every start an exec, a second look at the policy and two copies of it, and separate nothing.
 */

#include "box/box.h"
#include "session/run-request.h"

/*
 * Runs the request to its end (with REQUEST_DETACH: until the sandbox lives, and the half that stays is a child) and
 * returns the exit status; errors are told on stderr. The caller has no threads, and nothing open above 2. Everything
 * is borrowed. The policy holds nothing that cannot be enforced.
 */
int launch_box(const struct run_request *request, const struct run_policy *policy) MUST_USE;
