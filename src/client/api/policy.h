/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A compiled policy, in a sealed memfd: what a sandbox is started with. Immutable; it is not looked into here. Part of
 * libatoll.
 */

#include "client/api/context.h"
#include "client/api/job.h"
#include "client/api/rows.h"

struct atoll_policy {
	struct atoll_context *context;
	int fd;                  /* owned; FD_NONE: it has problems alone, or is not finished */
	struct job *job;         /* owned: that compiles it; NULL: it is finished */
	uint8_t hash[32];
	bool has_hash;           /* not of one that was handed in */
	struct rows problems;
};

/* Whether it can be used: 0, or ATOLL_E_*. */
int policy_check(const struct atoll_policy *policy, struct atoll_error *error) MUST_USE;
