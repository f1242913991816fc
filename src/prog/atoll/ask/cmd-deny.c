/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/ask/answer.h"

static const struct option options[] = {
	{ 0, "json", NULL, "one JSON object", OPTION_FLAG, offsetof(struct answer_options, json) },
};

static int run_verb(int argc, char **argv, struct err *err)
{
	return answer_run(&cmd_deny, false, argc, argv, err);
}

const struct cmd cmd_deny = {
	"deny", "N", "refuse what a sandbox asks for",
	CMD_OPTIONS(options), .run = run_verb,
};
