/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "client/dirs.h"
#include "client/program.h"
#include "client/tokens.h"
#include "os/path.h"
#include "prog/atoll/policy/token-policy.h"
#include "prog/atoll/verb/cmd.h"

/*
 * `atoll token`: becomes atoll-token, which has the ciphers that the static programs do without, with the directories
 * of the user's keys and of what is remembered of tokens.
 */

struct token_options {
	struct option_list allow, limit, agent;
	const char *expires, *not_before, *uses, *project, *policy;
	bool seal, remove, json;
};

static const struct option options[] = {
#define AT(field) offsetof(struct token_options, field)
	{ 0, "allow", "KIND=SUBJECT", "mint, narrow: let this happen where a policy would ask", OPTION_LIST,
	  AT(allow) },
	{ 0, "limit", "NAME=AMOUNT", "mint, narrow: leave so much of memory, processes, disk, wall, cpu, network",
	  OPTION_LIST, AT(limit) },
	{ 'p', "policy", "POLICY", "mint: let happen what this policy does beyond its level", OPTION_TEXT, AT(policy) },
	{ 0, "expires", "TIME", "mint, narrow: how long it holds (mint: 1h)", OPTION_TEXT, AT(expires) },
	{ 0, "not-before", "TIME", "mint, narrow: it holds only after so long", OPTION_TEXT, AT(not_before) },
	{ 0, "uses", "N", "mint, narrow: how often it can be presented", OPTION_TEXT, AT(uses) },
	{ 0, "project", "DIR", "mint, narrow: only for this project; verify: as there", OPTION_TEXT, AT(project) },
	{ 0, "agent", "NAME", "mint, narrow: only for this policy or session; verify: as it", OPTION_LIST, AT(agent) },
	{ 0, "seal", NULL, "mint, narrow: nobody can narrow it further", OPTION_FLAG, AT(seal) },
	{ 0, "remove", NULL, "trust: do so no longer", OPTION_FLAG, AT(remove) },
	{ 0, "json", NULL, "show, verify, list, trust: JSON", OPTION_FLAG, AT(json) },
#undef AT
};

/* As `atoll run` will know it; one that is not there yet stays as it is named. */
static int find_project(struct token_options *given, char named[PATH_MAX], struct err *err)
{
	static char real[PATH_MAX];
	int r;

	if (!given->project)
		return 0;
	r = dirs_absolute(given->project, "project", named, err);
	if (r == 0)
		given->project = path_real(named, real, sizeof real) == 0 ? real : named;
	return r;
}

/* 1: atoll-policy has told what is wrong with it. */
static int add_policy(struct token_options *given, const char *verb, struct err *err)
{
	if (!verb || !str_equal(verb, "mint")) {
		err_set(err, ERR_USAGE, EINVAL, "token", "-p is only for mint");
		err_hint(err, "narrow a token with --allow");
		return -EINVAL;
	}
	return token_policy_words(given->policy, given->project, &given->allow, err);
}

static int run_verb(int argc, char **argv, struct err *err)
{
	cleanup_words struct words words = { 0 };
	struct token_options given = { 0 };
	struct token_directories dirs;
	char project[PATH_MAX];
	int rest, r = cmd_parse(&cmd_token, &given, argc, argv, &rest, err);

	if (r == 0 && given.policy)
		r = add_policy(&given, argv[rest], err);
	if (r == 1)
		return 125;
	/* What it lets happen stands in --allow by now. */
	given.policy = NULL;
	if (r == 0)
		r = find_project(&given, project, err);
	if (r == 0)
		r = token_directories(&dirs, err);
	if (r < 0)
		return r;
	words_add(&words, "atoll-token");
	words_add_option(&words, "--keys", dirs.keys);
	words_add_option(&words, "--store", dirs.store);
	words_add_options(&words, options, ARRAY_SIZE(options), &given);
	words_add(&words, "--");
	words_add_all(&words, (const char *const *)argv + rest);
	return program_become("token", &words, err);
}

const struct cmd cmd_token = {
	"token", "mint --allow KIND=SUBJECT… | narrow | show | verify [FILE] | list | revoke ID | trust KEY | key",
	"make, narrow and check capability tokens",
	CMD_OPTIONS(options), .run = run_verb,
};
