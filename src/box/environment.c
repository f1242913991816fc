/* SPDX-License-Identifier: Apache-2.0 */
#include "box/environment.h"

#include <string.h>

#include "base/str.h"
#include "policy/trust-files.h"

bool environment_passes(const struct policy *policy, const char *name, size_t name_size)
{
	for (size_t i = 0; i < policy->env_pass_count; i++) {
		const char *pattern = policy->env_pass[i].pattern;
		size_t size;

		/* Most are told apart by their first byte. */
		if (*pattern != '*' && (!name_size || *pattern != *name))
			continue;
		size = strlen(pattern);
		if (size && pattern[size - 1] == '*') {
			if (name_size >= size - 1 && memcmp(name, pattern, size - 1) == 0)
				return true;
		} else if (size == name_size && memcmp(name, pattern, size) == 0) {
			return true;
		}
	}
	return false;
}

static size_t name_size(const char *entry)
{
	const char *equals = strchr(entry, '=');

	return equals ? (size_t)(equals - entry) : 0;
}

static bool has_name(char *const *env, size_t count, const char *entry, size_t size)
{
	for (size_t i = 0; i < count; i++)
		if (strncmp(env[i], entry, size) == 0 && env[i][size] == '=')
			return true;
	return false;
}

/* Takes entry (NULL: out of memory). False only when out of memory. */
static bool add(char **env, size_t *count, char *entry)
{
	size_t size = entry ? name_size(entry) : 0;

	if (!entry)
		return false;
	if (!size || has_name(env, *count, entry, size))
		free(entry);
	else
		env[(*count)++] = entry;
	return true;
}

char **environment_make(const struct environment_input *input)
{
	const struct policy *policy = input->policy;
	size_t caller_count = strv_count(input->caller), forced_count = strv_count(input->forced);
	size_t added_count = strv_count(input->added), placeholder_count = strv_count(input->placeholders), count = 0;
	size_t trust_count = input->trusts_gate ? trust_variable_count : 0;
	char **env = calloc(caller_count + added_count + placeholder_count + forced_count + policy->env_set_count +
				    trust_count + 1,
			    sizeof *env);
	bool ok = env != NULL;

	for (size_t i = 0; ok && i < forced_count; i++)
		ok = add(env, &count, str_dup(input->forced[i]));
	for (size_t i = 0; ok && i < placeholder_count; i++)
		ok = add(env, &count, str_dup(input->placeholders[i]));
	for (size_t i = 0; ok && i < added_count; i++)
		ok = add(env, &count, str_dup(input->added[i]));
	for (size_t i = 0; ok && i < policy->env_set_count; i++)
		ok = add(env, &count, str_printf("%s=%s", policy->env_set[i].name, policy->env_set[i].value));
	for (size_t i = 0; ok && i < trust_count; i++)
		ok = add(env, &count, str_printf("%s=%s", trust_variables[i].name,
						 trust_file_paths[trust_variables[i].file]));
	for (size_t i = 0; ok && i < caller_count; i++)
		if (environment_passes(policy, input->caller[i], name_size(input->caller[i])))
			ok = add(env, &count, str_dup(input->caller[i]));
	if (!ok) {
		strv_free(env);
		return NULL;
	}
	return env;
}
