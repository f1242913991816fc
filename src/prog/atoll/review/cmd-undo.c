/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "prog/atoll/review/review.h"
#include "prog/atoll/verb/cmd.h"
#include "stage/change/review-options.h"

#define AT(member) offsetof(struct undo_options, member)
static const struct option options[] = { UNDO_OPTIONS(AT) };

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
