/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "base/names.h"
#include "base/str.h"
#include "client/fork-origin.h"
#include "client/run-setup.h"
#include "os/clock.h"
#include "os/memory.h"
#include "os/pty.h"
#include "policy/policy.h"
#include "prog/atoll/run/narrow-prompt.h"
#include "prog/atoll/run/run.h"
#include "prog/atoll/verb/cmd.h"
#include "prog/atoll/verb/say.h"

struct run_options {
	struct run_setup setup;
	bool detach, quiet, no_tty, json, apply, discard, keep, no_review;
	const char *origin;
};

static const struct option options[] = {
#define AT(field) offsetof(struct run_options, field)
	{ 'p', "policy", "POLICY", "use this policy: a name that atoll ships or a file", OPTION_TEXT,
	  AT(setup.policy) },
	{ 't', "trust", "LEVEL", "trust level: none, low, medium (default), high or full", OPTION_TEXT,
	  AT(setup.trust) },
	{ 'd', "detach", NULL, "leave the sandbox running in the background and print its id", OPTION_FLAG,
	  AT(detach) },
	{ 'n', "name", "NAME", "give the session a name that other verbs understand", OPTION_TEXT,
	  AT(setup.name) },
	{ 'e', "env", "NAME[=VALUE]", "set or pass a variable whatever the policy says", OPTION_LIST,
	  AT(setup.env) },
	{ 0, "unmask", "PATH", "show this file, of which the policy masks the name", OPTION_LIST,
	  AT(setup.amendments.unmask) },
	{ 0, "publish", "[HOSTPORT:]PORT", "let a loopback port of this machine lead to a port inside", OPTION_LIST,
	  AT(setup.publish) },
	{ 0, "host-port", "PORT[=NAME]", "let localhost:PORT inside lead to that port of this machine (a local model)",
	  OPTION_LIST, AT(setup.amendments.host_ports) },
	{ 0, "degrade", "WALLS", "run without these walls (cgroup.memory,…) where this machine lacks them", OPTION_TEXT,
	  AT(setup.amendments.degrade) },
	{ 0, "root", "NAME", "with this system in the place of the machine's (atoll template)", OPTION_TEXT,
	  AT(setup.amendments.root) },
	{ 'C', "cwd", "DIR", "start the command in this directory", OPTION_TEXT, AT(setup.cwd) },
	{ 0, "project", "DIR", "the project, instead of the nearest directory with .atoll.yaml or .git",
	  OPTION_TEXT, AT(setup.project) },
	{ 0, "report", "FILE", "write what happened to FILE as one JSON object", OPTION_TEXT,
	  AT(setup.report) },
	{ 0, "record", "FILE", "keep the HTTP exchanges of the run in FILE, which must not be there yet", OPTION_TEXT,
	  AT(setup.record) },
	{ 0, "replay", "FILE", "answer HTTP requests from FILE, with no network at all", OPTION_TEXT,
	  AT(setup.replay) },
	{ 0, "token", "FILE", "let happen what this capability token allows; - reads it from stdin", OPTION_TEXT,
	  AT(setup.token) },
	{ 0, "agent", "NAME", "the agent that runs, whose record says how far it is trusted (atoll trust)", OPTION_TEXT,
	  AT(setup.agent) },
	{ 0, "confidence", "C", "no more than you are confident of: low, medium, high, or 0 to 1", OPTION_TEXT,
	  AT(setup.confidence) },
	{ 0, "task", "TEXT", "what the command is for: kept in the log, and told to the external verifier", OPTION_TEXT,
	  AT(setup.task) },
	{ 0, "narrow", "MODE", "run without what --task does not need, as the policy's verifier proposes: ask (alone), "
	  "auto, try, off", OPTION_MAYBE, AT(setup.narrow) },
	{ 'q', "quiet", NULL, "no notes and no summary on stderr", OPTION_FLAG, AT(quiet) },
	{ 0, "no-tty", NULL, "give the command no terminal of its own", OPTION_FLAG, AT(no_tty) },
	{ 0, "apply-on-success", NULL, "apply the staged changes when the command exits with 0", OPTION_FLAG,
	  AT(apply) },
	{ 0, "discard", NULL, "drop the staged changes at the end", OPTION_FLAG, AT(discard) },
	{ 0, "keep", NULL, "keep the staged changes for a review (the default)", OPTION_FLAG, AT(keep) },
	{ 0, "no-review-prompt", NULL, "do not ask on the terminal at the end what becomes of the changes", OPTION_FLAG,
	  AT(no_review) },
	{ 0, "continue", "ID", "begin with what this session has staged", OPTION_TEXT, AT(origin) },
	{ 0, "json", NULL, "with --detach: print one JSON object", OPTION_FLAG, AT(json) },
#undef AT
};


static int check_options(const struct run_options *given, struct err *err)
{
	char shown[ERR_QUOTE_SIZE];

	if (given->apply + given->discard + given->keep > 1)
		return err_set(err, ERR_USAGE, EINVAL, "run",
			       "--apply-on-success, --discard and --keep exclude each other");
	if (given->setup.record && given->setup.replay)
		return err_set(err, ERR_USAGE, EINVAL, "run", "--record and --replay exclude each other");
	if (given->setup.task && (!*given->setup.task || strlen(given->setup.task) > REQUEST_TASK_MAX))
		return err_set(err, ERR_USAGE, EINVAL, "run", "--task needs a text of at most %d bytes",
			       REQUEST_TASK_MAX);
	if (given->setup.narrow && *given->setup.narrow &&
	    names_find(narrow_names, NARROW_COUNT, given->setup.narrow) < 0) {
		err_set(err, ERR_USAGE, EINVAL, "run", "--narrow=%s is not a mode",
			err_quote(shown, given->setup.narrow));
		err_hint(err, "the modes are ask, auto, try and off");
		return -EINVAL;
	}
	if (given->setup.narrow && !given->setup.task && !str_equal(given->setup.narrow, "off"))
		return err_set(err, ERR_USAGE, EINVAL, "run", "--narrow needs a --task to narrow the policy for");
	if (given->json && !given->detach)
		return err_set(err, ERR_USAGE, EINVAL, "run",
			       "--json is only for --detach; use --report FILE for other runs");
	if (given->setup.report && str_equal(given->setup.report, "-"))
		return err_set(err, ERR_USAGE, EINVAL, "run",
			       "--report needs a file: stdout belongs to the command");
	if (given->setup.report && !*given->setup.report)
		return err_set(err, ERR_USAGE, EINVAL, "run", "--report needs a file, not an empty name");
	if (given->setup.policy && !*given->setup.policy)
		return err_set(err, ERR_USAGE, EINVAL, "run", "--policy needs a policy, not an empty name");
	return run_setup_check(&given->setup, err);
}

/* Whether a person is there at the end who has not said yet what becomes of the changes. */
static bool asks_review(const struct run_options *given)
{
	const char *setting = getenv("ATOLL_REVIEW_PROMPT");

	return !(given->detach || given->quiet || given->apply || given->discard || given->keep || given->no_review) &&
	       !str_equal(setting, "off") && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && isatty(STDERR_FILENO) &&
	       pty_is_able(getenv("TERM"));
}

static uint32_t request_flags(const struct run_options *given)
{
	return (given->detach ? REQUEST_DETACH : 0) | (given->quiet ? REQUEST_QUIET : 0) |
	       (given->no_tty ? REQUEST_NO_TTY : 0) | (given->json ? REQUEST_JSON : 0) |
	       (given->apply ? REQUEST_APPLY : 0) | (given->discard ? REQUEST_DISCARD : 0) |
	       (asks_review(given) ? REQUEST_REVIEW : 0);
}

/* A fork has the project and the policy of its origin unless the user says otherwise. */
static void set_origin(struct run_setup *setup, const struct fork_origin *origin)
{
	setup->origin = origin;
	if (!setup->project)
		setup->project = origin->project;
}

int run_start(int argc, char **argv, const struct fork_origin *origin, uint64_t started_ns, struct err *err)
{
	struct run_options given = { 0 };
	cleanup_free struct fork_origin *found = NULL; /* large, and nearly never used */
	int rest, r = cmd_parse(&cmd_run, &given, argc, argv, &rest, err);

	memory_take_stack();
	if (r == 0)
		r = check_options(&given, err);
	if (r == 0 && origin && given.origin)
		r = err_set(err, ERR_USAGE, EINVAL, "fork", "a fork cannot have --continue: it names its origin "
							    "already");
	if (r == 0 && given.origin) {
		found = malloc(sizeof *found);
		r = found ? fork_find(given.origin, NULL, found, err)
			  : err_set(err, ERR_INTERNAL, ENOMEM, "run", "out of memory");
		origin = found;
	}
	if (r != 0)
		return r;
	if (given.setup.amendments.unmask.count && origin && !given.setup.policy && !given.setup.trust) {
		err_set(err, ERR_USAGE, EINVAL, "run", "a run that continues a session has the policy of that session");
		err_hint(err, "name the policy (-p) with --unmask");
		return -EINVAL;
	}
	given.setup.flags = request_flags(&given);
	given.setup.prompt = &narrow_prompt;
	given.setup.notice = say_notice;
	if (origin)
		set_origin(&given.setup, origin);
	return run_setup_start(&given.setup, argv + rest, started_ns, err);
}

static int run_verb(int argc, char **argv, struct err *err)
{
	return run_start(argc, argv, NULL, clock_monotonic_ns(), err);
}

const struct cmd cmd_run = {
	"run", "[-p POLICY] [-t LEVEL] [--] [CMD…]", "run a command, or the agent of a policy, in a sandbox",
	CMD_OPTIONS(options), .runs_command = true, .run = run_verb,
};
