/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a trial of a command runs under (`atoll dry-run`): the policy, with what reaches the host taken away. Only ever
 * tighter: what was written straight to the host is copied on write, or can be read only; a shared network is none; no
 * port is published, and nobody is asked. That nothing goes out through the gate is the replay's part (egress/tape.h).
 * Pure but for the callback.
 */

#include "policy/policy.h"

struct policy_trial_plan {
	struct policy policy;            /* borrows from what it was made of, and from the two below */
	struct file_rule *files;         /* owned; NULL: those of the policy */
	struct file_plan_entry *entries; /* owned; as above */
	bool is_changed;                 /* something would have been written straight to the host */
};

/*
 * can_stage: whether the path is a directory that can be a staged tree of this run; where it is not, and below NULL,
 * it can be read only. 0, or -ENOMEM. ret_plan is to be given to policy_trial_done() in both cases.
 */
int policy_trial_make(struct policy_trial_plan *ret_plan, const struct policy *policy,
		      bool (*can_stage)(const char *path));
void policy_trial_done(struct policy_trial_plan *plan);
