/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/choosing.h"

#include <string.h>

static enum apply_verdict verdict_of(const struct stage_change *change, struct wanting *wanting)
{
	if (!wanting_has(wanting, change->tree, change->path))
		return APPLY_UNWANTED;
	if (change->state == STAGE_REFUSED)
		return APPLY_REFUSED;
	if (change->is_settled)
		return APPLY_UNWANTED;
	if (change->is_flagged && !wanting_allows(wanting, change->tree, change->path))
		return APPLY_FLAGGED;
	return change->state == STAGE_CONFLICT ? APPLY_CONFLICT : APPLY_TAKEN;
}

static int load_changes(struct choosing *choosing, struct err *err)
{
	const struct opened *opened = choosing->opened;
	struct judging judging;
	int r = judging_init(&judging, opened, err);

	if (r < 0)
		return r;
	for (size_t tree = 0; tree < opened->record.tree_count && r == 0; tree++) {
		struct stage_change_options options;

		r = judging_begin(&judging, tree, &options);
		if (r == 0)
			r = stage_changes_load(&choosing->changes, &opened->stacks[tree], &options);
		if (r < 0)
			err_set(err, ERR_STATE, -r, "stage", "what was staged in %s cannot be read: %s",
				opened->record.trees[tree].path, strerror(-r));
	}
	judging_done(&judging);
	return r;
}

int choosing_load(struct choosing *ret_choosing, const struct opened *opened, struct wanting *wanting,
		  struct err *err)
{
	struct choosing choosing = { .opened = opened };
	int r = load_changes(&choosing, err);

	if (r == 0)
		r = judging_know_paths(opened, &choosing.changes, wanting->paths, err);
	if (r == 0) {
		choosing.items = calloc(choosing.changes.count + 1, sizeof *choosing.items);
		if (!choosing.items)
			r = err_set(err, ERR_INTERNAL, ENOMEM, "stage", "out of memory");
	}
	if (r < 0) {
		choosing_done(&choosing);
		return r;
	}
	for (size_t i = 0; i < choosing.changes.count; i++) {
		const struct stage_change *change = &choosing.changes.items[i];

		choosing.items[i] = (struct apply_item){ .change = change, .verdict = verdict_of(change, wanting) };
	}
	*ret_choosing = choosing;
	return 0;
}

void choosing_done(struct choosing *choosing)
{
	stage_changes_done(&choosing->changes);
	free(choosing->items);
	choosing->items = NULL;
}
