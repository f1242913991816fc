/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/trial.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void hide_network(struct policy *policy)
{
	policy->publish_count = 0;
	if (policy->network_mode != NETWORK_HOST)
		return;
	policy->network_mode = NETWORK_NONE;
	policy->network_default = VERDICT_DENY;
	policy->network_count = policy->network_exact_count = policy->network_limited_count = 0;
}

static void ask_nobody(struct policy *policy)
{
	policy->ask.bell = policy->ask.prompt = policy->ask.desktop = policy->ask.webhook_answers = false;
	policy->ask.webhook = policy->ask.webhook_key = policy->ask.webhook_key_file = NULL;
}

/* A rule that no mount stands for has the class of what is around it. */
static int change_classes(struct policy_trial_plan *plan, bool (*can_stage)(const char *path))
{
	const struct policy *policy = &plan->policy;
	enum file_class class = can_stage ? FILE_STAGE : FILE_READ;

	plan->files = calloc(policy->file_count + 1, sizeof *plan->files);
	plan->entries = calloc(policy->file_plan_count + 1, sizeof *plan->entries);
	if (!plan->files || !plan->entries)
		return -ENOMEM;
	memcpy(plan->files, policy->files, policy->file_count * sizeof *plan->files);
	memcpy(plan->entries, policy->file_plan, policy->file_plan_count * sizeof *plan->entries);
	for (size_t i = 0; i < policy->file_count; i++)
		if (plan->files[i].class == FILE_WRITE)
			plan->files[i].class = class;
	for (size_t i = 0; i < policy->file_plan_count; i++) {
		struct file_plan_entry *entry = &plan->entries[i];

		if (entry->class != FILE_WRITE)
			continue;
		plan->is_changed = true;
		entry->class = can_stage && can_stage(entry->path) ? FILE_STAGE : FILE_READ;
		plan->files[entry->rule].class = entry->class;
	}
	return 0;
}

int policy_trial_make(struct policy_trial_plan *ret_plan, const struct policy *policy,
		      bool (*can_stage)(const char *path))
{
	int r;

	*ret_plan = (struct policy_trial_plan){ .policy = *policy };
	hide_network(&ret_plan->policy);
	ask_nobody(&ret_plan->policy);
	ret_plan->policy.stage_auto = STAGE_AUTO_OFF;
	r = change_classes(ret_plan, can_stage);
	if (r == 0) {
		ret_plan->policy.files = ret_plan->files;
		ret_plan->policy.file_plan = ret_plan->entries;
	}
	return r;
}

void policy_trial_done(struct policy_trial_plan *plan)
{
	free(plan->files);
	free(plan->entries);
	plan->files = NULL;
	plan->entries = NULL;
}
