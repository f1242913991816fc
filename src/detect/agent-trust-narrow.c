/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/names.h"
#include "base/str.h"
#include "detect/agent-trust.h"
#include "detect/reactions.h"
#include "os/fd.h"
#include "policy/snapshot/snapshot.h"
#include "supervise/run.h"

/*
 * The network of a policy without what its higher trust levels give: rules remember the text that they stand in, so
 * nothing has to be parsed. What is left is part of what was allowed before, and what the policy itself adds stays.
 */

/* The level whose text this is, ".../levels/NAME.yaml"; -1: another text. */
static int level_of(const struct rule_origin *origin)
{
	static const char folder[] = "/levels/", ending[] = ".yaml";
	const char *name = path_basename(origin->file);
	size_t before = (size_t)(name - origin->file), length = strlen(name);
	char level[16];

	if (before < strlen(folder) || strncmp(name - strlen(folder), folder, strlen(folder)) != 0 ||
	    !str_has_suffix(name, ending) ||
	    str_format(level, sizeof level, "%.*s", (int)(length - strlen(ending)), name) < 0)
		return -1;
	return names_find(trust_level_names, TRUST_COUNT, level);
}

/* Of the rules of a policy those that stay, in their order. */
struct narrowing {
	struct net_rule *rules;
	uint32_t *limited;
	size_t count, limited_count, exact_count;
	bool is_less;
};

static void keep_rules(const struct policy *policy, enum trust_level level, bool asks, struct narrowing *out)
{
	for (size_t i = 0; i < policy->network.count; i++) {
		const struct net_rule *rule = &policy->network.rules[i];
		bool is_above = level_of(&rule->origin) > (int)level && rule->verdict > VERDICT_ASK;

		out->is_less |= is_above;
		if (is_above && (!asks || rule->inject.kind != INJECT_NONE || rule->answer))
			continue;
		out->rules[out->count] = *rule;
		if (is_above)
			out->rules[out->count].verdict = VERDICT_ASK;
		if (rule->limits)
			out->limited[out->limited_count++] = (uint32_t)out->count;
		out->exact_count += i < policy->network.exact_count;
		out->count++;
	}
}

static int store(const struct policy *policy, const struct snapshot *snapshot)
{
	const struct snapshot_source *sources;
	cleanup_buf struct buf out;
	size_t count;
	int r;

	buf_init(&out, SNAPSHOT_SIZE_MAX);
	sources = snapshot_sources(snapshot, &count);
	r = snapshot_store(&out, policy, sources, count);
	return r < 0 ? r : fd_memfd_sealed("policy", out.bytes, out.size);
}

int agent_trust_narrow(struct agent_trust *agent, enum trust_level level, bool asks)
{
	const enum verdict most = asks ? VERDICT_ASK : VERDICT_DENY;
	const struct policy *now = agent->run->network_policy;
	struct policy next = *now;
	cleanup_free struct net_rule *rules = calloc(now->network.count + 1, sizeof *rules);
	cleanup_free uint32_t *limited = calloc(now->network.count + 1, sizeof *limited);
	struct narrowing narrowing = { .rules = rules, .limited = limited };
	const struct reactions *reactions = agent->reactions;
	cleanup_fd int fd = FD_NONE;
	int r;

	if (!rules || !limited)
		return -ENOMEM;
	r = reactions->can_change_network(reactions->context);
	if (r)
		return r;
	keep_rules(now, level, asks, &narrowing);
	if (level_of(&now->network.default_origin) > (int)level && now->network.default_verdict > most) {
		next.network.default_verdict = most;
		narrowing.is_less = true;
	}
	if (!narrowing.is_less)
		return 1;
	next.level = level;
	next.network.rules = rules;
	next.network.count = narrowing.count;
	next.network.exact_count = narrowing.exact_count;
	next.network.limited = limited;
	next.network.limited_count = narrowing.limited_count;
	fd = store(&next, agent->run->policy->snapshot);
	return fd < 0 ? fd : reactions->change_network(reactions->context, fd);
}

int agent_trust_widen(struct agent_trust *agent)
{
	const struct reactions *reactions = agent->reactions;
	int r = reactions->can_change_network(reactions->context);
	cleanup_fd int fd = FD_NONE;

	if (r)
		return r;
	fd = fd_memfd_sealed("policy", agent->run->policy->bytes, agent->run->policy->size);
	return fd < 0 ? fd : reactions->change_network(reactions->context, fd);
}
