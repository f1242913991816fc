/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/policy.h"

#include "base/str.h"

static size_t add(const char *names[POLICY_SECRETS_MAX], size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (str_equal(names[i], name))
			return count;
	if (count < POLICY_SECRETS_MAX)
		names[count++] = name;
	return count;
}

size_t policy_secrets(const struct policy *policy, const char *names[POLICY_SECRETS_MAX])
{
	size_t count = 0;

	for (size_t i = 0; i < policy->network.count; i++)
		if (policy->network.rules[i].inject.kind != INJECT_NONE)
			count = add(names, count, policy->network.rules[i].inject.secret);
	for (const char *const *canary = policy->data.canaries; canary && *canary; canary++)
		count = add(names, count, *canary);
	return count;
}
