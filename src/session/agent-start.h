/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What an agent needs before it starts (`agent:` of a policy): its command, the places in the home where it keeps its
 * login and its memory, and the keys of the caller that it does not get. What the host does not have cannot be written
 * in place: it would be thrown away with the sandbox, and the agent would be new at each start. Run by atoll, as the
 * user, before anything is mounted.
 */

#include "base/cleanup.h"
#include "base/err.h"

struct policy;
struct run_request;

/*
 * A run that was given no command gets the policy's, in request->command.argv (borrowed from it); a detached one needs
 * none. Then makes what agent.state lists and the host does not have, where the policy shows it in place and its
 * command is in the caller's PATH: directories with mode 0700, files with 0600 and their content. Nothing that is
 * there is changed. Tells people what was made, what could not be, with its command, and which of their variables stay
 * outside (dropped-variables.h). In a trial nothing is made. -EINVAL with *err where there is no command.
 */
int agent_prepare(const struct policy *policy, struct run_request *request, struct err *err) MUST_USE;
