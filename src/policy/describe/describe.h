/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A policy in plain words for the one who is confined by it: /run/atoll/limits.md. Agents that know
 * their limits do not thrash against them. Pure; runs in atoll-box.
 */

#include "base/buf.h"
#include "policy/policy.h"

/* How a limit of resources is held in this run. */
enum limit_hold {
	LIMIT_HOLDS,        /* at every moment */
	LIMIT_LOOKED_AT,    /* what is above is seen after a while, and ends the run */
	LIMIT_HOLDS_NOT,    /* nothing here holds it, and the policy lets it be missing: it is not said */
};

/* What the policy does not know: the machine that it is enforced on. All zero: everything is there and holds. */
struct policy_place {
	bool (*is_there)(const char *path); /* whether the host has this path; NULL: it has all */
	enum limit_hold holds[RESOURCE_COUNT];
	uint64_t open_files;        /* what one process may have open here; 0: what the policy says */
};

/*
 * Appends Markdown to out. An optional path that the host does not have is described as what is around it, which it
 * then is. 0, or the buffer's sticky error.
 */
int policy_describe(const struct policy *policy, const struct policy_place *place, struct buf *out) MUST_USE;
