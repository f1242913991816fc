/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the sandbox has said by names. A rule with a wildcard lets it choose a part of each name, which whoever answers
 * for the domain hears when the name is resolved, and so does the server. Different names are counted by the bytes of
 * that part: for each such rule, and for all together. A name that was let out once is not refused later; but which of
 * several comes next is said as well, and is counted by its bits. Pure. Runs in atoll-egress.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "policy/policy.h"

enum { LABELS_RULES_MAX = 16 };  /* that cover one name */

struct action;
struct labels;

struct labels_hit {
	const char *rule;            /* id, borrowed from the policy; NULL: the session */
	uint64_t amount;
	bool is_first;               /* of this rule */
};

/* seed: 16 random bytes, so that no two names can be chosen that are taken for one. NULL: no memory. */
struct labels *labels_new(const uint8_t seed[16]) MUST_USE;
void labels_free(struct labels *labels);

/*
 * A connection to host (lower case) on port is about to be made: 0, and it is counted; *ret_bytes are said with it that
 * were not said before. 1: refused because of *ret_hit, and nothing is counted. -ENOMEM.
 */
int labels_take(struct labels *labels, const struct policy *policy, const struct action *connection, size_t *ret_bytes,
		struct labels_hit *ret_hit) MUST_USE;
