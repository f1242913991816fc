/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "client/dirs.h"
#include "prog/atoll/verb/cmd.h"

enum { ARGS_MAX = 2 * OPTION_LIST_MAX + 32 };

struct verify_options {
	bool command, json, no_own, operations, sarif, test_rules;
	const char *fail_on, *language;
	struct option_list rules;
};

static const struct option options[] = {
	{ 0, "command", NULL, "the words are a command, not a file", OPTION_FLAG,
	  offsetof(struct verify_options, command) },
	{ 0, "fail-on", "SEVERITY", "exit 1 from this severity on: low, medium, high (default) or critical",
		OPTION_TEXT,
	  offsetof(struct verify_options, fail_on) },
	{ 0, "json", NULL, "print one JSON object", OPTION_FLAG, offsetof(struct verify_options, json) },
	{ 'l', "language", "LANGUAGE", "shell, python or javascript (default: by name and content)", OPTION_TEXT,
	  offsetof(struct verify_options, language) },
	{ 0, "no-own-rules", NULL, "without the rules in ~/.config/atoll/verify", OPTION_FLAG,
	  offsetof(struct verify_options, no_own) },
	{ 0, "operations", NULL, "show what the text does, as rules see it", OPTION_FLAG,
	  offsetof(struct verify_options, operations) },
	{ 'r', "rules", "FILE", "these rules as well", OPTION_LIST, offsetof(struct verify_options, rules) },
	{ 0, "sarif", NULL, "print SARIF 2.1.0", OPTION_FLAG, offsetof(struct verify_options, sarif) },
	{ 0, "test-rules", NULL, "try the examples of all rules", OPTION_FLAG,
	  offsetof(struct verify_options, test_rules) },
};

/* Strings borrowed. */
struct args {
	const char **argv;
	size_t count;
};

static void add(struct args *args, bool is_given, const char *option, const char *value)
{
	if (!is_given)
		return;
	args->argv[args->count++] = option;
	if (value)
		args->argv[args->count++] = value;
}

static bool wants_colour(void)
{
	const char *terminal = getenv("TERM");

	return isatty(STDOUT_FILENO) && !getenv("NO_COLOR") && terminal && !str_equal(terminal, "dumb");
}

static void add_options(struct args *args, const struct verify_options *given)
{
	add(args, given->command, "--command", NULL);
	add(args, given->json, "--json", NULL);
	add(args, given->no_own, "--no-own-rules", NULL);
	add(args, given->operations, "--operations", NULL);
	add(args, given->sarif, "--sarif", NULL);
	add(args, given->test_rules, "--test-rules", NULL);
	add(args, given->fail_on, "--fail-on", given->fail_on);
	add(args, given->language, "--language", given->language);
	for (size_t i = 0; i < given->rules.count; i++)
		add(args, true, "--rules", given->rules.values[i]);
	add(args, wants_colour(), "--colour", NULL);
	add(args, true, "--", NULL);
}

static int run_verb(int argc, char **argv, struct err *err)
{
	struct verify_options given = { 0 };
	char programs[PATH_MAX], program[PATH_MAX];
	struct args args = { .count = 0 };
	int rest, r = cmd_parse(&cmd_verify, &given, argc, argv, &rest, err);

	if (r == 0)
		r = dirs_programs(programs, err);
	if (r < 0)
		return r;
	if (path_join(program, sizeof program, programs, "atoll-verify") < 0)
		return err_set(err, ERR_STATE, ENAMETOOLONG, "verify", "the path of atoll's programs is too long");
	args.argv = calloc((size_t)argc + ARGS_MAX, sizeof *args.argv);
	if (!args.argv)
		return err_set(err, ERR_INTERNAL, ENOMEM, "verify", "out of memory");
	add(&args, true, "atoll-verify", NULL);
	add_options(&args, &given);
	for (int i = rest; i < argc; i++)
		add(&args, true, argv[i], NULL);
	execve(program, (char **)args.argv, environ);
	r = err_not_started("verify", program, errno, err);
	free(args.argv);
	return r;
}

const struct cmd cmd_verify = {
	"verify", "[-l LANGUAGE] [--json | --sarif] FILE|-… | --command -- CMD… | --test-rules",
	"judge a script or a command without running it",
	CMD_OPTIONS(options), .run = run_verb,
};
