/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the ways to a sandbox have in common: one that is started (start.c), one that is parked and taken (park.c).
 * Part of libatoll.
 */

#include "client/api/sandbox.h"
#include "client/api/spawn.h"
#include "client/api/streams.h"

struct atoll_policy;

/* A policy hides the state and run-time directories that it was compiled for, and no others: 0, or ATOLL_E_*. */
int start_check_policy(const struct atoll_policy *policy, const struct atoll_context *context,
		       struct atoll_error *error) MUST_USE;

/*
 * Puts into a request what a record asks for, the id, and the streams of the plan. The descriptors (borrowed) go behind
 * those that the request has. 0, or -errno.
 */
int start_put(struct spawn_request *request, const struct atoll_record *record, const char *const *skip,
	      const struct stream_plan *plan) MUST_USE;

/* Puts in the policy's descriptor, borrowed: of a start. */
void start_put_policy(struct spawn_request *request, const struct atoll_policy *policy);

/* Our ends of the streams belong to the sandbox's main command from now on. */
void start_adopt_streams(struct atoll_sandbox *sandbox, struct stream_plan *plan);
