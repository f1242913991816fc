/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The file of `atoll run --record` and `--replay`: opened by the user's rights and before the sandbox is there, so that
 * the network gate, which has no file system, gets a descriptor. What is in it the gate alone reads.
 */

#include "base/cleanup.h"
#include "base/err.h"
#include "policy/policy.h"

/*
 * record: the path of a file that is made here, 0600, and must not be there yet; replay: of one that is. At most one of
 * them is not NULL. *ret_fd is the caller's; FD_NONE when both are NULL. Refuses a file that the sandbox could see
 * grow, or change, and a policy without a gate that could see requests.
 */
int recording_open(const char *record, const char *replay, const struct policy *policy, int *ret_fd,
		   struct err *err) MUST_USE;

/* A recording of nothing, for a run that shall reach nobody: every request is refused and written down. */
int recording_open_blank(int *ret_fd, struct err *err) MUST_USE;
