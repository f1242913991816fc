/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/review/review.h"
#include "prog/atoll/verb/cmd.h"
#include "prog/atoll/verb/dry-run-end.h"
#include "stage/change/review-options.h"

/* `atoll discard`: drops what a session staged, all of it or these dirs. */

#define AT(member) offsetof(struct discard_options, member)
static const struct option options[] = { DISCARD_OPTIONS(AT) };

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
