/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/cooldown.h"

enum { MS_NS = 1000000 };

/* When the count-th last refusal was; there are as many. */
static uint64_t ago(const struct cooldown *cooldown, size_t count)
{
	return cooldown->refused_ns[(cooldown->next + COOLDOWN_DENIALS_MAX - count) % COOLDOWN_DENIALS_MAX];
}

bool cooldown_count(struct cooldown *cooldown, const struct cooldown_rule *rule, uint64_t now_ns)
{
	if (!rule->denials || now_ns < cooldown->until_ns)
		return false;
	cooldown->refused_ns[cooldown->next] = now_ns;
	cooldown->next = (cooldown->next + 1) % COOLDOWN_DENIALS_MAX;
	cooldown->count += cooldown->count < COOLDOWN_DENIALS_MAX;
	if (cooldown->count < rule->denials || now_ns - ago(cooldown, rule->denials) > rule->within_ms * MS_NS)
		return false;
	/* What led to this pause does not lead to the next one as well. */
	cooldown->count = 0;
	cooldown->until_ns = now_ns + rule->pause_ms * MS_NS;
	cooldown->episodes++;
	return true;
}

uint64_t cooldown_left_ms(const struct cooldown *cooldown, uint64_t now_ns)
{
	return now_ns < cooldown->until_ns ? (cooldown->until_ns - now_ns + MS_NS - 1) / MS_NS : 0;
}
