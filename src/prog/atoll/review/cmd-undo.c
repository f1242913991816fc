/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "prog/atoll/review/review.h"
#include "prog/atoll/verb/cmd.h"

struct undo_options {
	const char *number;
	bool list, dry_run, rehearse, quiet, json;
};

static const struct option options[] = {
	{ 'n', "apply", "N", "the apply with this number, instead of the newest", OPTION_TEXT,
	  offsetof(struct undo_options, number) },
	{ 0, "list", NULL, "list what was applied", OPTION_FLAG, offsetof(struct undo_options, list) },
	{ 0, "dry-run", NULL, "say what would be done, and do nothing", OPTION_FLAG,
	  offsetof(struct undo_options, dry_run) },
	{ 0, "rehearse", NULL, "say whether it can be taken back, and change nothing at all", OPTION_FLAG,
	  offsetof(struct undo_options, rehearse) },
	{ 'q', "quiet", NULL, "say only what was left", OPTION_FLAG, offsetof(struct undo_options, quiet) },
	{ 0, "json", NULL, "one JSON object, with exact names", OPTION_FLAG, offsetof(struct undo_options, json) },
};

static int run_verb(int argc, char **argv, struct err *err)
{
	cleanup_review struct review review = { 0 };
	struct undo_options given = { 0 };
	int rest, r = cmd_parse(&cmd_undo, &given, argc, argv, &rest, err);

	if (r == 0)
		r = review_find(&review, "undo", argv + rest, err);
	return r < 0 ? r : review_exec(&review, &cmd_undo, &given, false, err);
}

const struct cmd cmd_undo = {
	"undo", "[ID] [--rehearse] [--list] [PATH…]", "take an apply back",
	CMD_OPTIONS(options), .run = run_verb,
};
