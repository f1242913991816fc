/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>

#include "base/names.h"
#include "base/str.h"
#include "client/compiled.h"
#include "client/dirs.h"
#include "client/find.h"
#include "client/program.h"
#include "os/path.h"
#include "prog/atoll/policy/subverbs.h"
#include "prog/atoll/verb/cmd.h"
#include "session/directories.h"
#include "session/record.h"

/*
 * `atoll policy`: becomes atoll-policy, which alone reads policy text, with the same project, home and
 * shipped policies that a run would have. What is not atoll-policy's is in subverbs.h.
 */

struct policy_options {
	const char *policy, *trust, *project, *output, *session;
	bool json;
};

static const struct option options[] = {
	{ 'p', "policy", "POLICY", "a shipped policy, one of your own, or a path", OPTION_TEXT,
	  offsetof(struct policy_options, policy) },
	{ 't', "trust", "LEVEL", "trust level: none, low, medium (default), high or full", OPTION_TEXT,
	  offsetof(struct policy_options, trust) },
	{ 0, "project", "DIR", "the project (default: where you stand)", OPTION_TEXT,
	  offsetof(struct policy_options, project) },
	{ 'o', "output", "FILE", "learn: write the proposal to this file, which must not be there yet", OPTION_TEXT,
	  offsetof(struct policy_options, output) },
	{ 0, "session", "ID", "show: what this session goes by now, or went by when it ended", OPTION_TEXT,
	  offsetof(struct policy_options, session) },
	{ 0, "json", NULL, "print JSON", OPTION_FLAG, offsetof(struct policy_options, json) },
};

static int choose_project(const char *given, char out[PATH_MAX], struct err *err)
{
	int r;

	if (given) {
		r = path_real(given, out, PATH_MAX);
		return r < 0 ? err_set(err, ERR_USAGE, -r, "options", "--project %s cannot be used: %s",
				       given, strerror(-r))
			     : 0;
	}
	return find_project(out, err);
}

/* Where the box keeps what it enforces, also after `policy set`. */
static int find_snapshot(const char *session, char out[PATH_MAX], struct err *err)
{
	cleanup_session_record struct session_record record = { 0 };
	char state[PATH_MAX];
	int r = session_state_dir(state, sizeof state, false, err);

	if (r == 0)
		r = find_session(state, session, &record, err);
	if (r < 0)
		return r;
	r = session_path(state, record.id, "policy.bin", out, PATH_MAX);
	return r < 0 ? err_set(err, ERR_STATE, -r, "policy", "the session's path is too long") : 0;
}

/* Replaces this process; the words behind the options go along as they are. */
static int become(const struct policy_options *given, const char *verb, char **rest, struct err *err)
{
	cleanup_words struct words words = { 0 };
	char policies[PATH_MAX], project[PATH_MAX], home[PATH_MAX], config_home[PATH_MAX], snapshot[PATH_MAX];
	int r = program_path("policy", "policies", policies, err);

	if (r == 0)
		r = choose_project(given->project, project, err);
	if (r == 0 && given->session)
		r = find_snapshot(given->session, snapshot, err);
	if (r < 0)
		return r;
	r = session_home_dir(home, sizeof home);
	if (r == 0)
		r = dirs_config_home(home, config_home);
	if (r < 0)
		return err_set(err, ERR_USAGE, -r, "policy", "a directory's path is too long");
	words_add(&words, "atoll-policy");
	words_add(&words, verb);
	words_add_option(&words, "--level", given->trust);
	words_add_option(&words, "--policy", given->policy);
	words_add_option(&words, "--project", project);
	words_add_option(&words, "--home", home);
	words_add_option(&words, "--config-home", config_home);
	words_add_option(&words, "--policies", policies);
	words_add_option(&words, "--snapshot", given->session ? snapshot : NULL);
	words_add_flag(&words, given->json, "--json");
	words_add(&words, "--");
	words_add_all(&words, (const char *const *)rest);
	return program_become("policy", &words, err);
}

/* The verbs about sessions, which have a project of their own. */
static const struct {
	const char *name, *form;
	int (*run)(char **words, bool json, struct err *err);
} about_sessions[] = {
	{ "set", "atoll policy set [ID] POLICY", policy_set },
	{ "test", "atoll policy test POLICY [ID…]", policy_test },
};

/* The project is the one that the command would be run in. */
static int learn(const struct policy_options *given, char **words, struct err *err)
{
	struct learn_request request = { .policy = given->policy, .trust = given->trust, .output = given->output,
					 .command = words };

	if (given->json || given->project)
		return err_set(err, ERR_USAGE, EINVAL, "policy", "learn cannot be used with --json or --project");
	return policy_learn(&request, err);
}

static int check_words(const struct policy_options *given, const char *name, const char *form, struct err *err)
{
	if (!given->policy && !given->trust && !given->project)
		return 0;
	err_set(err, ERR_USAGE, EINVAL, "policy", "%s takes the policy as an argument, and uses the project of the "
						  "session",
		name);
	err_hint(err, "%s", form);
	return -EINVAL;
}

/* The policy of a run that would be started here. words: behind "explain trust". */
static int explain_trust(const struct policy_options *given, char **words, struct err *err)
{
	cleanup_compiled struct compiled compiled = { 0 };
	char policy[PATH_MAX], shown[ERR_QUOTE_SIZE];
	static struct dirs dirs;
	struct compiled_request request = {
		.level = given->trust, .policy = given->policy, .project = dirs.project, .home = dirs.home,
		.config_home = dirs.config_home, .programs_dir = dirs.programs, .state_dir = dirs.state,
		.runtime_dir = dirs.runtime,
	};
	int r;

	if (words[0] && words[1])
		return err_set(err, ERR_USAGE, EINVAL, "policy", "explain trust takes one agent at most");
	if (words[0] && !trust_agent_is_valid(words[0]))
		return err_set(err, ERR_USAGE, EINVAL, "policy", "%s cannot be the name of an agent",
			       err_quote(shown, words[0]));
	r = dirs_find(&dirs, given->project, NULL, err);
	if (r == 0 && given->policy && strchr(given->policy, '/')) {
		r = dirs_absolute(given->policy, "policy", policy, err);
		request.policy = policy;
	}
	if (r == 0)
		r = compiled_get(&request, &compiled, err);
	return r != 0 ? r
		      : policy_explain_trust(snapshot_policy(compiled.snapshot), &dirs, words[0], given->json, err);
}

/* NULL: nothing was named. */
static int set_unknown(const char *name, struct err *err)
{
	static const char *const all[] = { "check", "diff", "explain", "learn", "list", "set", "show", "test" };
	const char *nearest = name ? names_nearest(all, ARRAY_SIZE(all), name) : NULL;
	char shown[ERR_QUOTE_SIZE];

	if (name)
		err_set(err, ERR_USAGE, EINVAL, "policy", "%s is not a verb of `atoll policy`",
			err_quote(shown, name));
	else
		err_set(err, ERR_USAGE, EINVAL, "policy", "no verb for policies was given");
	if (nearest)
		err_hint(err, "did you mean `atoll policy %s`?", nearest);
	else
		err_hint(err, "check, diff, explain, learn, list, set, show or test; see `atoll help policy`");
	return -EINVAL;
}

static int run_verb(int argc, char **argv, struct err *err)
{
	static const char *const verbs[] = { "check", "diff", "explain", "show" };
	struct policy_options given = { 0 };
	int rest, r = cmd_parse(&cmd_policy, &given, argc, argv, &rest, err);

	if (r < 0)
		return r;
	for (size_t i = 0; rest < argc && i < ARRAY_SIZE(about_sessions); i++) {
		if (!str_equal(argv[rest], about_sessions[i].name))
			continue;
		r = check_words(&given, about_sessions[i].name, about_sessions[i].form, err);
		return r < 0 ? r : about_sessions[i].run(argv + rest + 1, given.json, err);
	}
	if (rest < argc && str_equal(argv[rest], "list"))
		return policy_list(argv + rest + 1, given.json, err);
	if (rest < argc && str_equal(argv[rest], "learn"))
		return learn(&given, argv + rest + 1, err);
	if (rest + 1 < argc && str_equal(argv[rest], "explain") && str_equal(argv[rest + 1], "trust"))
		return explain_trust(&given, argv + rest + 2, err);
	if (given.output)
		return err_set(err, ERR_USAGE, EINVAL, "policy", "--output is for learn");
	if (given.session && (rest + 1 != argc || !str_equal(argv[rest], "show") || given.policy || given.trust))
		return err_set(err, ERR_USAGE, EINVAL, "policy", "--session is for show, and replaces the policy");
	for (size_t i = 0; rest < argc && i < ARRAY_SIZE(verbs); i++) {
		if (str_equal(argv[rest], verbs[i]))
			return become(&given, argv[rest], argv + rest + 1, err);
	}
	return set_unknown(rest < argc ? argv[rest] : NULL, err);
}

const struct cmd cmd_policy = {
	"policy", "list | check [POLICY] | show [POLICY] | explain KIND SUBJECT | explain trust [AGENT] | diff A B | "
	"set [ID] POLICY | test POLICY [ID…] | learn -- CMD…",
	"list, check, print, question, compare or change policies",
	CMD_OPTIONS(options), .run = run_verb,
};
