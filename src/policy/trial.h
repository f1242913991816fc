/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a trial of a command runs under (`atoll dry-run`): the policy, with what reaches the host taken away. Only ever
 * tighter: what was written straight to the host is copied on write, or can be read only; a shared network is none;
 * there are no devices, no port is published, and nobody is asked. All that it tries is logged. That nothing goes out
 * through the gate is the replay's part (egress/record/recording.h). Pure but for the callback.
 */

#include "base/cleanup.h"
#include "policy/policy.h"

/* The rule that refuses what a network shared with the host would have let out. */
#define POLICY_TRIAL_RULE "builtin.trial"

/* What lies at a path that the policy writes straight to. */
enum policy_trial_place {
	POLICY_TRIAL_DIRECTORY,          /* it can be a staged tree of this run */
	POLICY_TRIAL_FILE,               /* a regular file, or a directory that cannot be staged: to be read */
	POLICY_TRIAL_NOTHING,            /* then nothing would have been written there either */
	POLICY_TRIAL_DOOR,               /* a socket, FIFO or device: whoever sees it can talk to the host */
};

struct policy_trial_plan {
	struct policy policy;            /* borrows from what it was made of, and from the two below */
	struct file_rule *files;         /* owned; NULL: those of the policy */
	struct file_plan_entry *entries; /* owned; as above */
	bool is_changed;                 /* something would have reached the host, or a verifier */
};

/* 0, or -ENOMEM. ret_plan is to be given to policy_trial_done() in both cases. */
int policy_trial_make(struct policy_trial_plan *ret_plan, const struct policy *policy,
		      enum policy_trial_place (*place_of)(const char *path)) MUST_USE;
void policy_trial_done(struct policy_trial_plan *plan);
