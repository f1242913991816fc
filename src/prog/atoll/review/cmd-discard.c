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
	cleanup_review struct review *review = NULL;
	struct discard_options given = { 0 };
	int rest, used, r = cmd_parse(&cmd_discard, &given, argc, argv, &rest, err);

	if (r < 0)
		return r;
	review = review_new("discard", argv + rest, argc - rest, &used, err);
	if (!review)
		return -err->errnum;
	rest += used;
	/* A trial that is dropped is not to be done for real either. */
	r = rest == argc && review->session.is_trial ? dry_run_drop(review->state, review->session.id, err) : 0;
	if (r < 0)
		return r;
	r = given.quiet ? review_add(review, "--quiet", NULL, err) : 0;
	if (r == 0)
		r = review_add_paths(review, argv + rest, argc - rest, err);
	return r < 0 ? r : review_exec(review, err);
}

const struct cmd cmd_discard = {
	"discard", "[ID] [PATH…]", "drop what a session has staged",
	CMD_OPTIONS(options), .run = run_verb,
};
