/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/apply/conflict-choice.h"

#include <errno.h>

const char *const settlement_names[SETTLEMENT_COUNT] = {
	[SETTLE_NOT] = "none",	   [SETTLE_OURS] = "ours",	 [SETTLE_THEIRS] = "theirs",
	[SETTLE_MERGE] = "merge", [SETTLE_MARKERS] = "markers",
};

int settlement_choose(bool ours, bool theirs, bool merge, bool markers, enum settlement *ret_settlement,
		      struct err *err)
{
	if (ours + theirs + merge > 1) {
		err_set(err, ERR_USAGE, EINVAL, "apply", "only one of --ours, --theirs and --merge can be used");
		err_hint(err, "run one apply for each of them, and name its paths");
		return -EINVAL;
	}
	if (markers && !merge)
		return err_set(err, ERR_USAGE, EINVAL, "apply", "--markers needs --merge");
	*ret_settlement = ours ? SETTLE_OURS : theirs ? SETTLE_THEIRS : !merge ? SETTLE_NOT :
			  markers ? SETTLE_MARKERS : SETTLE_MERGE;
	return 0;
}

void settling_run(struct apply *apply, struct path_filter *filter, enum settlement settlement)
{
	static const enum apply_verdict verdicts[SETTLEMENT_COUNT] = {
		[SETTLE_OURS] = APPLY_KEPT, [SETTLE_THEIRS] = APPLY_TAKEN, [SETTLE_MERGE] = APPLY_CONFLICT,
		[SETTLE_MARKERS] = APPLY_CONFLICT,
	};

	for (size_t i = 0; i < apply->count && settlement != SETTLE_NOT; i++) {
		struct apply_item *item = &apply->items[i];
		const struct stage_change *change = item->change;
		bool is_named = *filter->paths != NULL;

		if (change->state != STAGE_CONFLICT || (change->is_settled && !is_named) ||
		    !path_filter_has(filter, change->tree, change->path))
			continue;
		/* To leave the host's as it is needs no leave. */
		if (settlement != SETTLE_OURS && change->is_flagged &&
		    !path_filter_allows(filter, change->tree, change->path))
			continue;
		item->verdict = verdicts[settlement];
	}
}
