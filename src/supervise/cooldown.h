/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The pause after a burst of refusals (network.limits.cooldown): who guesses hosts gets nothing at all for a while.
 * Counted by the box, which sees every refusal, and not by the gate. Pure. Runs in atoll-box.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/policy.h"

struct cooldown {
	uint64_t refused_ns[COOLDOWN_DENIALS_MAX]; /* a ring: when the last ones were */
	size_t next, count;
	uint64_t until_ns;               /* 0: there was no pause yet */
	uint32_t episodes;
};

/* A refusal of what the policy does not allow. True: a pause begins with it. */
bool cooldown_count(struct cooldown *cooldown, const struct cooldown_rule *rule, uint64_t now_ns);

/* How long nothing new is let out; 0: it is. */
uint64_t cooldown_left_ms(const struct cooldown *cooldown, uint64_t now_ns);
