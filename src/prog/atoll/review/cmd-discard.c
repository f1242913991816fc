/* SPDX-License-Identifier: Apache-2.0 */
#include "client/dry-run-end.h"
#include "prog/atoll/review/review.h"
#include "prog/atoll/verb/cmd.h"

/* `atoll discard`: drops what a session staged, all of it or these dirs. */

struct discard_options {
	bool quiet;
};

static const struct option options[] = {
	{ 'q', "quiet", NULL, "say nothing when it worked", OPTION_FLAG, offsetof(struct discard_options, quiet) },
};

static int run_verb(int argc, char **argv, struct err *err)
{
	cleanup_review struct review review = { 0 };
	struct discard_options given = { 0 };
	int rest, r = cmd_parse(&cmd_discard, &given, argc, argv, &rest, err);

	if (r == 0)
		r = review_find(&review, "discard", argv + rest, err);
	/* A trial that is dropped is not to be done for real either. */
	if (r == 0 && !*review.paths && review.session.is_trial)
		r = dry_run_drop(review.state, review.session.id, err);
	return r < 0 ? r : review_exec(&review, &cmd_discard, &given, false, err);
}

const struct cmd cmd_discard = {
	"discard", "[ID] [PATH…]", "drop what a session has staged",
	CMD_OPTIONS(options), .run = run_verb,
};
