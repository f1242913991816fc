/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>

#include "client/program.h"
#include "prog/atoll/verb/cmd.h"
#include "session/directories.h"

/* `atoll template`: becomes atoll-template, which has the readers of archives that the static programs do without. */

struct template_options {
	bool json, quiet;
};

static const struct option options[] = {
	{ 0, "json", NULL, "one JSON object, or an array", OPTION_FLAG, offsetof(struct template_options, json) },
	{ 'q', "quiet", NULL, "import: no progress on a terminal", OPTION_FLAG,
	  offsetof(struct template_options, quiet) },
};

static int run_verb(int argc, char **argv, struct err *err)
{
	cleanup_words struct words words = { 0 };
	struct template_options given = { 0 };
	char state[PATH_MAX];
	int rest, r = cmd_parse(&cmd_template, &given, argc, argv, &rest, err);

	if (r == 0)
		r = session_state_dir(state, sizeof state, true, err);
	if (r < 0)
		return r;
	words_add(&words, "atoll-template");
	words_add_option(&words, "--state", state);
	words_add_options(&words, options, ARRAY_SIZE(options), &given);
	words_add(&words, "--");
	words_add_all(&words, (const char *const *)argv + rest);
	return program_become("template", &words, err);
}

const struct cmd cmd_template = {
	"template", "import SOURCE [NAME] | list | show NAME | remove NAME…",
	"keep systems that sandboxes have in the place of the machine's", CMD_OPTIONS(options), .run = run_verb,
};
