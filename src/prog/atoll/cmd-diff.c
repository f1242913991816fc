/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "prog/atoll/cmd.h"
#include "prog/atoll/review.h"

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

const struct cmd_options cmd_diff_options = { options, ARRAY_SIZE(options) };

static int add_options(struct review *review, const struct diff_options *given, struct err *err)
{
	const struct {
		bool is_given;
		const char *option;
	} flags[] = {
		{ given->patch, "--patch" }, { given->stat, "--stat" }, { given->json, "--json" },
		{ given->flagged, "--flagged" },
		{ !review->session.ended_ns && !review->session.is_live, "--interrupted" },
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(flags); i++)
		if (flags[i].is_given)
			r = review_add(review, flags[i].option, NULL, err);
	return r;
}

int cmd_diff(int argc, char **argv, struct err *err)
{
	cleanup_review struct review *review = NULL;
	struct diff_options given = { 0 };
	int rest, r = options_parse(options, ARRAY_SIZE(options), &given, argc, argv, true, &rest, err);

	if (r == 1)
		return cmd_show_help("diff");
	if (r < 0)
		return r;
	if (given.json && (given.patch || given.stat))
		return err_set(err, ERR_USAGE, EINVAL, "diff", "--json goes with neither --patch nor --stat");
	review = review_new("diff", err);
	if (!review)
		return -err->errnum;
	r = review_find(review, argv + rest, argc - rest, err);
	if (r < 0)
		return r;
	rest += r;
	r = add_options(review, &given, err);
	for (int i = rest; r == 0 && i < argc; i++)
		r = review_add_path(review, argv[i], err);
	if (r < 0)
		return r;
	return given.json ? review_exec(review, err) : review_exec_paged(review, err);
}
