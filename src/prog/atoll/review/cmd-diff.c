/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "prog/atoll/review/review.h"
#include "prog/atoll/verb/cmd.h"

struct diff_options {
	bool patch, stat, json, flagged;
};

static const struct option options[] = {
	{ 'p', "patch", NULL, "show the lines that differ", OPTION_FLAG, offsetof(struct diff_options, patch) },
	{ 0, "stat", NULL, "show a line for each path (the default)", OPTION_FLAG,
	  offsetof(struct diff_options, stat) },
	{ 0, "json", NULL, "one JSON object, with exact names", OPTION_FLAG, offsetof(struct diff_options, json) },
	{ 0, "flagged", NULL, "only what is flagged", OPTION_FLAG, offsetof(struct diff_options, flagged) },
};

static int run_verb(int argc, char **argv, struct err *err)
{
	cleanup_review struct review review = { 0 };
	struct diff_options given = { 0 };
	int rest, r = cmd_parse(&cmd_diff, &given, argc, argv, &rest, err);

	if (r < 0)
		return r;
	if (given.json && (given.patch || given.stat))
		return err_set(err, ERR_USAGE, EINVAL, "diff", "--json goes with neither --patch nor --stat");
	r = review_find(&review, "diff", argv + rest, err);
	if (r < 0)
		return r;
	words_add_flag(&review.words, !review.session.ended_ns && !review.session.is_live, "--interrupted");
	return review_exec(&review, &cmd_diff, &given, !given.json, err);
}

const struct cmd cmd_diff = {
	"diff", "[ID] [-p] [--json] [--flagged] [PATH…]", "show what a session would change on the host",
	CMD_OPTIONS(options), .run = run_verb,
};
