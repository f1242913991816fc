/* SPDX-License-Identifier: Apache-2.0 */
#include "session/dropped-variables.h"

#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "policy/policy.h"
#include "session/environment.h"
#include "session/said.h"

enum { NAME_MAX_SIZE = 64, TOLD_MAX = 4 };

/* Keys that a shipped policy takes from the vault; a policy of that name begins with the agent's. */
static const struct {
	const char *variable, *secret, *policy;
} kept_outside[] = {
	{ "ANTHROPIC_API_KEY", "anthropic", "claude" }, { "ANTHROPIC_API_KEY", "anthropic", "opencode" },
	{ "OPENAI_API_KEY", "openai", "codex" },	{ "OPENAI_API_KEY", "openai", "aider" },
	{ "GEMINI_API_KEY", "gemini", "gemini" },
};

/* How names end, or are, of what says who one is; and of what is no secret. */
static const struct {
	const char *ending;
	bool is_secret;
} wanted[] = {
	{ "_API_KEY", true },	   { "_AUTH_TOKEN", true },	  { "_OAUTH_TOKEN", true }, { "GH_TOKEN", true },
	{ "GITHUB_TOKEN", true },  { "GITLAB_TOKEN", true },	  { "HF_TOKEN", true },	    { "NPM_TOKEN", true },
	{ "_ACCESS_KEY_ID", true }, { "_SECRET_ACCESS_KEY", true }, { "_SESSION_TOKEN", true }, { "_BASE_URL", false },
	{ "_API_BASE", false },	   { "OLLAMA_HOST", false },
};

static bool has_entry(char *const *entries, const char *name, size_t size)
{
	for (; entries && *entries; entries++)
		if (strncmp(*entries, name, size) == 0 && (*entries)[size] == '=')
			return true;
	return false;
}

static bool sets(const struct policy *policy, const char *name)
{
	for (size_t i = 0; i < policy->env.set_count; i++)
		if (str_equal(policy->env.set[i].name, name))
			return true;
	return false;
}

/* NULL: nobody would miss it. */
static const bool *find_wanted(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		if (str_has_suffix(name, wanted[i].ending))
			return &wanted[i].is_secret;
	return NULL;
}

static void put_line(const struct policy *policy, const char *name, bool is_secret, struct buf *told)
{
	buf_printf(told, "atoll: %s is set here and stays outside; ", name);
	for (size_t i = 0; is_secret && i < ARRAY_SIZE(kept_outside); i++)
		if (str_equal(kept_outside[i].variable, name) && str_equal(kept_outside[i].policy, policy->name)) {
			buf_printf(told,
				   "to use it without showing it to the agent: printenv %s | atoll secret set %s, then "
				   "-p %s-key; ",
				   name, kept_outside[i].secret, policy->name);
			break;
		}
	buf_printf(told, "%s: -e %s (said once)\n", is_secret ? "to show it to the agent" : "to pass it", name);
}

void dropped_variables_tell(const struct dropped_variables *of, struct buf *told)
{
	char name[NAME_MAX_SIZE], key[NAME_MAX_SIZE + 16];
	unsigned count = 0;

	for (char *const *entry = of->caller; entry && *entry && count < TOLD_MAX; entry++) {
		size_t size = strcspn(*entry, "=");
		const bool *is_secret;

		if (!(*entry)[size] || !(*entry)[size + 1] || size >= sizeof name)
			continue;
		memcpy(name, *entry, size);
		name[size] = 0;
		is_secret = find_wanted(name);
		if (!is_secret || environment_passes(of->policy, name, size) || has_entry(of->added, name, size) ||
		    has_entry(of->placeholders, name, size) || sets(of->policy, name) ||
		    str_format(key, sizeof key, "variable.%s", name) < 0 || !said_first_time(of->state_dir, key))
			continue;
		put_line(of->policy, name, *is_secret, told);
		count++;
	}
}
