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
#include "token/token-options.h"

/*
 * `atoll token`: becomes atoll-token, which has the ciphers that the static programs do without, with the directories
 * of the user's keys and of what is remembered of tokens.
 */

struct token_options {
	struct option_list allow, limit, agent;
	const char *expires, *not_before, *uses, *project, *policy;
	bool seal, remove, json;
};

#define AT(member) offsetof(struct token_options, member)
static const struct option options[] = {
	TOKEN_OPTIONS(AT),
	{ 'p', "policy", "POLICY", "mint: let happen what this policy does beyond its level", OPTION_TEXT,
	  AT(policy) },
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
