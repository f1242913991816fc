/* SPDX-License-Identifier: Apache-2.0 */
#include "session/environment.h"

#include <string.h>

#include "base/str.h"
#include "policy/certificate-files.h"

bool environment_passes(const struct policy *policy, const char *name, size_t name_size)
{
	for (size_t i = 0; i < policy->env.pass_count; i++) {
		const char *pattern = policy->env.pass[i].pattern;
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

static bool is_identity(const char *entry)
{
	static const char *const names[] = { "USER=", "LOGNAME=" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_has_prefix(entry, names[i]))
			return true;
	return false;
}

static bool add_all(char **env, size_t *count, const char *const *entries)
{
	bool ok = true;

	for (; ok && entries && *entries; entries++)
		ok = add(env, count, str_dup(*entries));
	return ok;
}

/* Those that the policy passes, and that `is_wanted` is true of (NULL: all). */
static bool add_passed(char **env, size_t *count, const struct policy *policy, const char *const *entries,
		       bool (*is_wanted)(const char *entry))
{
	bool ok = true;

	for (; ok && entries && *entries; entries++)
		if (environment_passes(policy, *entries, name_size(*entries)) && (!is_wanted || is_wanted(*entries)))
			ok = add(env, count, str_dup(*entries));
	return ok;
}

static bool add_set(char **env, size_t *count, const struct environment_input *input)
{
	const struct policy *policy = input->policy;
	bool ok = true;

	for (size_t i = 0; ok && i < policy->env.set_count; i++)
		ok = add(env, count, str_printf("%s=%s", policy->env.set[i].name, policy->env.set[i].value));
	for (size_t i = 0; ok && input->trusts_gate && i < certificate_variable_count; i++)
		ok = add(env, count, str_printf("%s=%s", certificate_variables[i].name,
						certificate_file_paths[certificate_variables[i].file]));
	return ok;
}

char **environment_make(const struct environment_input *input)
{
	const struct policy *policy = input->policy;
	const char *const *const whole[] = { input->forced, input->placeholders, input->added, input->kept };
	size_t size = policy->env.set_count + certificate_variable_count + strv_count(input->caller) +
		      strv_count(input->fallback) + 1, count = 0;
	bool ok = true;
	char **env;

	for (size_t i = 0; i < ARRAY_SIZE(whole); i++)
		size += strv_count(whole[i]);
	env = calloc(size, sizeof *env);
	if (!env)
		return NULL;
	for (size_t i = 0; ok && i < ARRAY_SIZE(whole); i++)
		ok = add_all(env, &count, whole[i]);
	ok = ok && add_set(env, &count, input) &&
	     add_passed(env, &count, policy, input->fallback, is_identity) &&
	     add_passed(env, &count, policy, input->caller, NULL) &&
	     add_passed(env, &count, policy, input->fallback, NULL);
	if (!ok) {
		strv_free(env);
		return NULL;
	}
	return env;
}
