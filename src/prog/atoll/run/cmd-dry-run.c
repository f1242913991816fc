/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/names.h"
#include "base/str.h"
#include "os/fd.h"
#include "policy/policy.h"
#include "prog/atoll/run/dry-run.h"
#include "prog/atoll/verb/cmd.h"

struct dry_run_words {
	struct dry_run_options dry;
	const char *accept;
};

static const struct option options[] = {
#define AT(field) offsetof(struct dry_run_words, field)
	{ 'p', "policy", "POLICY", "use this policy: a name that atoll ships or a file", OPTION_TEXT,
	  AT(dry.setup.policy) },
	{ 't', "trust", "LEVEL", "trust level: none, low, medium (default), high or full", OPTION_TEXT,
	  AT(dry.setup.trust) },
	{ 'e', "env", "NAME[=VALUE]", "set or pass a variable whatever the policy says", OPTION_LIST,
	  AT(dry.setup.env) },
	{ 'C', "cwd", "DIR", "start the command in this directory", OPTION_TEXT, AT(dry.setup.cwd) },
	{ 0, "project", "DIR", "the project, instead of the nearest directory with .atoll.yaml or .git", OPTION_TEXT,
	  AT(dry.setup.project) },
	{ 0, "replay", "FILE", "answer HTTP requests of the trial from this recording", OPTION_TEXT,
	  AT(dry.setup.replay) },
	{ 0, "task", "TEXT", "what the command is for: kept in the log", OPTION_TEXT, AT(dry.setup.task) },
	{ 'y', "yes", NULL, "do it for real whatever the trial shows", OPTION_FLAG, AT(dry.yes) },
	{ 0, "if-clean", NULL, "do it for real where the trial shows nothing that wants a look, and ask nobody",
	  OPTION_FLAG, AT(dry.if_clean) },
	{ 0, "accept", "TRIAL", "do for real what an earlier trial showed", OPTION_TEXT, AT(accept) },
	{ 'q', "quiet", NULL, "say nothing and ask nobody", OPTION_FLAG, AT(dry.quiet) },
	{ 0, "json", NULL, "one JSON object on stdout; what the command prints goes to stderr", OPTION_FLAG,
	  AT(dry.json) },
#undef AT
};

static int refuse(struct err *err, const char *what, const char *hint)
{
	err_set(err, ERR_USAGE, EINVAL, "dry-run", "%s", what);
	if (hint)
		err_hint(err, "%s", hint);
	return -EINVAL;
}

static int check(const struct dry_run_words *words, struct err *err)
{
	const struct run_setup *setup = &words->dry.setup;
	bool has_more = setup->policy || setup->trust || setup->project || setup->cwd || setup->env.count ||
			setup->replay || setup->task || words->dry.if_clean || words->dry.session;

	if (words->accept && (has_more || words->dry.command[0]))
		return refuse(err, "--accept stands alone: what was tried is done as it was tried",
			      "atoll dry-run --accept TRIAL");
	if (words->dry.yes && words->dry.if_clean)
		return refuse(err, "--yes does it whatever is seen, --if-clean does not: one of them", NULL);
	if (!words->accept && !words->dry.command[0])
		return refuse(err, "there is no command to try", "say which: atoll dry-run [ID] -- CMD ARG…");
	if (words->dry.session && (setup->policy || setup->trust || setup->project))
		return refuse(err, "a session has its policy and project already", "leave out -p, -t and --project");
	if (setup->trust && names_find(trust_level_names, TRUST_COUNT, setup->trust) < 0)
		return refuse(err, "there is no such trust level", "the levels are none, low, medium, high and full");
	if (setup->task && (!*setup->task || strlen(setup->task) > REQUEST_TASK_MAX))
		return refuse(err, "--task needs a text of at most 4096 bytes", NULL);
	if ((setup->policy && !*setup->policy) || (words->accept && !*words->accept))
		return refuse(err, "an empty name is none", NULL);
	return 0;
}

/* ID -- CMD, behind the options. */
static bool is_in_front(char **argv, int rest)
{
	return !str_equal(argv[rest - 1], "--") && str_equal(argv[rest + 1], "--");
}

static int run_verb(int argc, char **argv, struct err *err)
{
	struct dry_run_words words = { .accept = NULL };
	int rest, r;

	/* The session stands first, as with fork: what is behind it belongs to the run. */
	if (argc > 1 && argv[1][0] != '-') {
		words.dry.session = argv[1];
		argv[1] = argv[0];
		argc--;
		argv++;
	}
	r = cmd_parse(&cmd_dry_run, &words, argc, argv, &rest, err);
	if (r < 0)
		return r;
	if (rest + 1 < argc && !words.dry.session && is_in_front(argv, rest)) {
		words.dry.session = argv[rest];
		rest += 2;
	}
	if (rest < argc && !str_equal(argv[rest - 1], "--"))
		return refuse(err, "the command stands behind --", "atoll dry-run [ID] [OPTION…] -- CMD ARG…");
	words.dry.command = argv + rest;
	r = check(&words, err);
	if (r == 0)
		r = fd_secure_standard();
	if (r < 0)
		return r;
	if (!words.accept)
		return dry_run(&words.dry, err);
	words.dry.yes = true;
	return dry_run_accept(words.accept, &words.dry, err);
}

const struct cmd cmd_dry_run = {
	"dry-run", "[ID] [-p POLICY] [-t LEVEL] [--if-clean] -- CMD… | --accept TRIAL",
	"try a command, show what it would do, then do it for real",
	CMD_OPTIONS(options), .runs_command = true, .run = run_verb,
};
