/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Run by the box at the end of a session where its own count of flagged changes depends on what it does not read: how
 * many they are, as a uint64_t to stdout, and nothing else.
 */

#include <unistd.h>

#include "os/fd.h"
#include "prog/atoll-stage/review/classifier.h"
#include "prog/atoll-stage/verb/opened.h"

struct flagged_options {
	struct verb_session session;
};

static const struct option options[] = {
	VERB_SESSION_OPTIONS(struct flagged_options),
};

static int on_change(void *context, const struct stage_change *change)
{
	uint64_t *count = context;

	*count += change->state != STAGE_REFUSED && change->is_flagged;
	return 0;
}

static int count_trees(const struct opened *opened, uint64_t *count, struct err *err)
{
	struct classifier classifier;
	int r = classifier_init(&classifier, opened, err);

	if (r < 0)
		return r;
	for (size_t tree = 0; r == 0 && tree < opened->record.tree_count; tree++) {
		struct stage_change_options walk;

		r = classifier_begin(&classifier, tree, &walk);
		if (r == 0)
			r = stage_changes_walk(&opened->stacks[tree], &walk, on_change, count);
	}
	classifier_done(&classifier);
	return r;
}

static int count_flagged(const struct flagged_options *given, struct err *err)
{
	cleanup_opened struct opened opened = OPENED_NONE;
	uint64_t count = 0;
	int r = opened_open(&opened, &given->session, err);

	if (r == 0)
		r = opened_stacks(&opened, err);
	if (r == 0)
		r = opened_confine(&opened, CONFINE_STAGE_READING, err);
	if (r == 0)
		r = count_trees(&opened, &count, err);
	if (r == 0)
		r = fd_write_full(STDOUT_FILENO, &count, sizeof count);
	return r < 0 && err->code == ERR_NONE
		       ? err_set(err, ERR_STATE, -r, "flagged", "what was staged cannot be read")
		       : r;
}

int cmd_flagged(int argc, char **argv, struct err *err)
{
	struct flagged_options given = { 0 };
	int rest, r = options_parse(options, ARRAY_SIZE(options), &given, argc, argv, true, &rest, err);

	if (r != 0)
		return r < 0 ? r : options_print(options, ARRAY_SIZE(options), STDOUT_FILENO);
	return count_flagged(&given, err);
}
