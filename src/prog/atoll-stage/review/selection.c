/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/review/selection.h"

#include <string.h>

static enum apply_verdict verdict_of(const struct stage_change *change, struct path_filter *filter)
{
	if (!path_filter_has(filter, change->tree, change->path))
		return APPLY_UNWANTED;
	if (change->state == STAGE_REFUSED)
		return APPLY_REFUSED;
	if (change->state == STAGE_SYSTEM)
		return APPLY_SYSTEM;
	if (change->is_settled)
		return APPLY_UNWANTED;
	if (change->is_flagged && !path_filter_allows(filter, change->tree, change->path))
		return APPLY_FLAGGED;
	return change->state == STAGE_CONFLICT ? APPLY_CONFLICT : APPLY_TAKEN;
}

static int load_changes(struct selection *selection, struct err *err)
{
	const struct opened *opened = selection->opened;
	struct classifier classifier;
	int r = classifier_init(&classifier, opened, err);

	if (r < 0)
		return r;
	for (size_t tree = 0; tree < opened->record.tree_count && r == 0; tree++) {
		struct stage_change_options options;

		r = classifier_begin(&classifier, tree, &options);
		if (r == 0)
			r = stage_changes_load(&selection->changes, &opened->stacks[tree], &options);
		if (r < 0)
			err_set(err, ERR_STATE, -r, "stage", "the staged changes in %s cannot be read: %s",
				opened_tree(opened, tree), strerror(-r));
	}
	classifier_done(&classifier);
	return r;
}

int selection_load(struct selection *ret_selection, const struct opened *opened, struct path_filter *filter,
		  struct err *err)
{
	struct selection selection = { .opened = opened };
	int r = load_changes(&selection, err);

	if (r == 0)
		r = classifier_check_paths(opened, &selection.changes, filter->paths, err);
	if (r == 0) {
		selection.items = calloc(selection.changes.count + 1, sizeof *selection.items);
		if (!selection.items)
			r = err_set(err, ERR_INTERNAL, ENOMEM, "stage", "out of memory");
	}
	if (r < 0) {
		selection_done(&selection);
		return r;
	}
	for (size_t i = 0; i < selection.changes.count; i++) {
		const struct stage_change *change = &selection.changes.items[i];

		selection.items[i] = (struct apply_item){ .change = change, .verdict = verdict_of(change, filter) };
	}
	*ret_selection = selection;
	return 0;
}

void selection_done(struct selection *selection)
{
	stage_changes_done(&selection->changes);
	free(selection->items);
	selection->items = NULL;
}
