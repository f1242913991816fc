/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "client/program.h"
#include "prog/atoll/verb/cmd.h"
#include "verify/model/verify-options.h"

struct verify_options {
	bool command, json, no_own, operations, sarif, test_rules;
	const char *fail_on, *language;
	struct option_list rules;
};

#define AT(member) offsetof(struct verify_options, member)
static const struct option options[] = {
	VERIFY_OPTIONS(AT),
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
