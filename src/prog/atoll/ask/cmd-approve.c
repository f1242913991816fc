/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/ask/answer.h"

static const struct option options[] = {
	{ 0, "uses", "N", "so many times", OPTION_TEXT, offsetof(struct answer_options, uses) },
	{ 0, "for", "TIME", "as often as wanted for so long: 10m, 2h", OPTION_TEXT,
	  offsetof(struct answer_options, time) },
	{ 0, "session", NULL, "until the sandbox ends", OPTION_FLAG, offsetof(struct answer_options, session) },
	{ 0, "forever", NULL, "and in every later one: a line in your own policy file", OPTION_FLAG,
	  offsetof(struct answer_options, forever) },
	{ 0, "json", NULL, "one JSON object", OPTION_FLAG, offsetof(struct answer_options, json) },
};

static int run_verb(int argc, char **argv, struct err *err)
{
	return answer_run(&cmd_approve, true, argc, argv, err);
}

const struct cmd cmd_approve = {
	"approve", "N [--uses N | --for TIME | --session | --forever]", "allow what a sandbox asks for",
	CMD_OPTIONS(options), .run = run_verb,
};
