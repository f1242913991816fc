/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/verb/cmd.h"
#include "prog/atoll/watch/log.h"

struct alerts_options {
	bool json;
};

static const struct option options[] = {
	{ 0, "json", NULL, "the records as they are, one JSON object a line", OPTION_FLAG,
	  offsetof(struct alerts_options, json) },
};

static int run_verb(int argc, char **argv, struct err *err)
{
	struct alerts_options given = { 0 };
	int rest, r = cmd_parse(&cmd_alerts, &given, argc, argv, &rest, err);

	if (r < 0)
		return r;
	if (argc - rest > 1) {
		err_set(err, ERR_USAGE, EINVAL, "alerts", "one session at a time");
		err_hint(err, "atoll alerts [ID]; `atoll ps -a` lists them");
		return -EINVAL;
	}
	return log_show_type(argv[rest], "alert", given.json, err);
}

const struct cmd cmd_alerts = {
	"alerts", "[ID] [--json]", "show what was alarming in a session, with the evidence",
	CMD_OPTIONS(options), .run = run_verb,
};
