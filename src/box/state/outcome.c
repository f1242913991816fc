/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "box/state/sandbox.h"

/* What the run has used and hit so far, and what follows from that. */

void box_read_usage(struct box *box)
{
	struct limit_usage usage;
	int r = box->run.limits ? limit_group_usage(box->run.limits, box->run.is_dead ? 0 : box->run.init.pid, &usage)
			    : -ENODATA;

	if (r == -EIO && box->run.ended == ENDED_NOT) {
		/* A limit was taken away from outside and cannot be put back: a wall is missing from now on. */
		loop_remove(box->run.loop, &box->serving.limit_source);
		err_set(box->run.err, ERR_WALL, EIO, "cgroup",
			"a limit of the sandbox was removed from outside, so it was stopped");
		run_end(&box->run, ENDED_POLICY);
	}
	if (r < 0)
		return;
	if (usage.memory_peak_bytes < box->run.usage.memory_peak_bytes)
		usage.memory_peak_bytes = box->run.usage.memory_peak_bytes;
	if (usage.processes_peak < box->run.usage.processes_peak)
		usage.processes_peak = box->run.usage.processes_peak;
	box->run.usage = usage;
}

int box_note_hits(struct box *box)
{
	int r = 0;

	if (box->run.usage.oom_kills)
		r = run_limit_hit(&box->run, "resources.memory",
				  box->run.policy->policy->limits[RESOURCE_MEMORY].value);
	if (r == 0 && box->run.usage.fork_refusals)
		r = run_limit_hit(&box->run, "resources.processes",
				  box->run.policy->policy->limits[RESOURCE_PROCESSES].value);
	return r;
}

bool box_will_apply(const struct box *box)
{
	return box->run.request->flags & REQUEST_APPLY && box->build.staging.has_changes &&
	       box->run.ended == ENDED_EXIT &&
	       box->outcome.exit_code == 0 && !box->outcome.failure_status && !box->outcome.lost_errno &&
	       !alerts_hold_apply(&box->detection.alerts);
}

const char *box_next_verb(const struct box *box)
{
	return box_will_apply(box) ? "apply" :
	       box->run.request->flags & REQUEST_REVIEW && box->run.policy->policy->ask.review &&
			       box->build.staging.has_changes ? "review" : NULL;
}
