/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/ask/answer.h"

static const struct option options[] = {
	{ 0, "json", NULL, "one JSON object", OPTION_FLAG, offsetof(struct answer_options, json) },
};

const struct cmd_options cmd_deny_options = { options, ARRAY_SIZE(options) };

int cmd_deny(int argc, char **argv, struct err *err)
{
	return answer_run(&cmd_deny_options, false, argc, argv, err);
}
