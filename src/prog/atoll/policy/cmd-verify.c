/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "client/program.h"
#include "prog/atoll/verb/cmd.h"

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

static bool wants_colour(void)
{
	const char *terminal = getenv("TERM");

	return isatty(STDOUT_FILENO) && !getenv("NO_COLOR") && terminal && !str_equal(terminal, "dumb");
}

static int run_verb(int argc, char **argv, struct err *err)
{
	cleanup_words struct words words = { 0 };
	struct verify_options given = { 0 };
	int rest, r = cmd_parse(&cmd_verify, &given, argc, argv, &rest, err);

	if (r < 0)
		return r;
	words_add(&words, "atoll-verify");
	words_add_options(&words, options, ARRAY_SIZE(options), &given);
	words_add_flag(&words, wants_colour(), "--colour");
	words_add(&words, "--");
	words_add_all(&words, (const char *const *)argv + rest);
	return program_become("verify", &words, err);
}

const struct cmd cmd_verify = {
	"verify", "[-l LANGUAGE] [--json | --sarif] FILE|-… | --command -- CMD… | --test-rules",
	"judge a script or a command without running it",
	CMD_OPTIONS(options), .run = run_verb,
};
