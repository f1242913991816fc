/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "prog/atoll/review/review.h"
#include "prog/atoll/verb/cmd.h"
#include "stage/change/review-options.h"

#define AT(member) offsetof(struct diff_options, member)
static const struct option options[] = { DIFF_OPTIONS(AT) };

static int run_verb(int argc, char **argv, struct err *err)
{
	cleanup_review struct review review = { 0 };
	struct diff_options given = { 0 };
	int rest, r = cmd_parse(&cmd_diff, &given, argc, argv, &rest, err);

	if (r < 0)
		return r;
	if (given.json && (given.patch || given.stat))
		return err_set(err, ERR_USAGE, EINVAL, "diff", "--json cannot be used with --patch or --stat");
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
