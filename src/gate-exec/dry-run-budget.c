/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-exec/dry-run-budget.h"


bool dry_run_budget_take(struct dry_run_budget *budget, uint64_t now_ns)
{
	static const struct bucket_limit limit = { 1, TRIAL_EVERY_MS, TRIALS_SAVED_MAX };

	if (!budget->is_begun)
		*budget = (struct dry_run_budget){ bucket_start(&limit, now_ns), true };
	if (bucket_fill(&budget->bucket, &limit, now_ns) < 1)
		return false;
	budget->bucket.tokens -= 1;
	return true;
}
