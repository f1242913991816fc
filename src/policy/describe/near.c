/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/describe/near.h"

#include <string.h>

#include "base/str.h"

struct found {
	const char *name;
	int likeness;
};

/* Keeps the best, of equal ones the first. */
static size_t consider(struct found best[POLICY_NEAR_MAX], size_t count, const char *name, int likeness)
{
	size_t at = count;

	while (at > 0 && best[at - 1].likeness < likeness)
		at--;
	if (at == POLICY_NEAR_MAX)
		return count;
	if (count == POLICY_NEAR_MAX)
		count--;
	memmove(best + at + 1, best + at, (count - at) * sizeof *best);
	best[at] = (struct found){ name, likeness };
	return count + 1;
}

/* Components that two paths have in common. */
static int common_depth(const char *a, const char *b)
{
	int depth = 0;
	size_t at = 0;

	for (; a[at] && a[at] == b[at]; at++)
		depth += a[at] == '/' && at > 0;
	return depth + (at > 1 && (!a[at] || a[at] == '/') && (!b[at] || b[at] == '/'));
}

static bool suits(enum action_kind kind, enum file_class class)
{
	if (kind == ACTION_FILE_WRITE)
		return class == FILE_STAGE || class == FILE_WRITE || class == FILE_SCRATCH;
	return class == FILE_READ || class == FILE_STAGE || class == FILE_WRITE;
}

static size_t find_places(const struct policy *policy, const struct action *action, struct found best[POLICY_NEAR_MAX])
{
	size_t count = 0;

	for (size_t i = 0; i < policy->files.plan_count; i++) {
		const struct file_plan_entry *entry = &policy->files.plan[i];
		bool is_project = policy->project[0] && str_equal(entry->path, policy->project);
		int depth = common_depth(entry->path, action->subject);

		/*
		 * What has only the top directory in common is not like it, but the project is for everything. Optional
		 * ones may not be there.
		 */
		if (suits(action->kind, entry->class) &&
		    (is_project || (depth > 1 && !(entry->flags & FILE_OPTIONAL))))
			count = consider(best, count, entry->path, depth);
	}
	return count;
}

/* The last two labels of a host. */
static const char *domain_of(const char *host)
{
	const char *at = host + strlen(host);
	int dots = 0;

	while (at > host && (at[-1] != '.' || ++dots < 2))
		at--;
	return at;
}

static size_t find_hosts(const struct policy *policy, const struct action *action, struct found best[POLICY_NEAR_MAX])
{
	const char *domain = domain_of(action->subject);
	size_t count = 0;

	for (size_t i = 0; i < policy->network.count; i++) {
		const struct net_rule *rule = &policy->network.rules[i];

		if (rule->host && rule->verdict == VERDICT_ALLOW && strchr(domain, '.') &&
		    str_equal(domain_of(rule->host), domain))
			count = consider(best, count, rule->host, str_equal(rule->host, action->subject));
	}
	return count;
}

size_t policy_near(const struct policy *policy, const struct action *action, const char *names[POLICY_NEAR_MAX])
{
	struct found best[POLICY_NEAR_MAX];
	size_t count = 0;

	if (action->kind == ACTION_FILE_READ || action->kind == ACTION_FILE_WRITE)
		count = find_places(policy, action, best);
	else if (action->kind == ACTION_NET_CONNECT)
		count = find_hosts(policy, action, best);
	for (size_t i = 0; i < count; i++)
		names[i] = best[i].name;
	return count;
}
