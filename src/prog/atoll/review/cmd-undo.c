/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "prog/atoll/review/review.h"
#include "prog/atoll/verb/cmd.h"

struct undo_options {
	const char *number;
	bool list, dry_run, quiet, json;
};

static const struct option options[] = {
	{ 'n', "apply", "N", "the apply with this number, instead of the newest", OPTION_TEXT,
	  offsetof(struct undo_options, number) },
	{ 0, "list", NULL, "list what was applied", OPTION_FLAG, offsetof(struct undo_options, list) },
	{ 0, "dry-run", NULL, "say what would be done, and do nothing", OPTION_FLAG,
	  offsetof(struct undo_options, dry_run) },
	{ 'q', "quiet", NULL, "say only what was left", OPTION_FLAG, offsetof(struct undo_options, quiet) },
	{ 0, "json", NULL, "one JSON object, with exact names", OPTION_FLAG, offsetof(struct undo_options, json) },
};

static int add_options(struct review *review, const struct undo_options *given, struct err *err)
{
	const struct review_flag flags[] = {
		{ given->list, "--list" }, { given->dry_run, "--dry-run" }, { given->quiet, "--quiet" },
		{ given->json, "--json" },
	};
	int r = review_add_flags(review, flags, ARRAY_SIZE(flags), err);

	if (r == 0 && given->number)
		r = review_add(review, "--apply", given->number, err);
	return r;
}

static int run_verb(int argc, char **argv, struct err *err)
{
	cleanup_review struct review *review = NULL;
	struct undo_options given = { 0 };
	int rest, used, r = cmd_parse(&cmd_undo, &given, argc, argv, &rest, err);

	if (r < 0)
		return r;
	review = review_new("undo", argv + rest, argc - rest, &used, err);
	if (!review)
		return -err->errnum;
	rest += used;
	r = add_options(review, &given, err);
	if (r == 0)
		r = review_add_paths(review, argv + rest, argc - rest, err);
	return r < 0 ? r : review_exec(review, err);
}

const struct cmd cmd_undo = {
	"undo", "[ID] [--list] [PATH…]", "take an apply back",
	CMD_OPTIONS(options), .run = run_verb,
};
