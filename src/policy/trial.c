/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/trial.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

static void hide_network(struct policy_trial_plan *plan)
{
	struct policy *policy = &plan->policy;

	policy->network.publish_count = 0;
	if (policy->network.mode != NETWORK_HOST)
		return;
	plan->is_changed = true;
	policy->network.mode = NETWORK_NONE;
	policy->network.default_verdict = VERDICT_DENY;
	policy->network.default_origin = (struct rule_origin){ POLICY_TRIAL_RULE, "", 0 };
	policy->network.count = policy->network.exact_count = policy->network.limited_count = 0;
}

static void hide_devices(struct policy_trial_plan *plan)
{
	plan->is_changed |= plan->policy.device_count > 0;
	plan->policy.device_count = 0;
}

/* Neither people nor a verifier, which would be told what the command is: for real it looks at it. */
static void ask_nobody(struct policy_trial_plan *plan)
{
	struct policy *policy = &plan->policy;

	plan->is_changed |= external_is_given(&policy->external);
	policy->ask.bell = policy->ask.prompt = policy->ask.review = policy->ask.desktop = false;
	policy->ask.webhook_answers = false;
	policy->ask.webhook = policy->ask.webhook_key = policy->ask.webhook_key_file = NULL;
	policy->external.command = NULL;
	policy->external.url = policy->external.model = policy->external.secret = NULL;
}

/* What a trial shows comes out of its log: whoever logs nothing would be shown to have done nothing. */
static void log_all(struct policy *policy)
{
	policy->audit.exec = policy->audit.network = AUDIT_ALL;
}

static const enum file_class classes[] = {
	[POLICY_TRIAL_DIRECTORY] = FILE_STAGE,
	[POLICY_TRIAL_FILE] = FILE_READ,
	[POLICY_TRIAL_NOTHING] = FILE_READ,
	[POLICY_TRIAL_DOOR] = FILE_MASK,
};

/* What repeats the entry above it says nothing, as everywhere in a plan. */
static bool is_repeated(const struct file_plan_entry *entries, size_t count, const struct file_plan_entry *entry)
{
	for (size_t i = count; i > 0; i--)
		if (path_is_below(entry->path, entries[i - 1].path))
			return entries[i - 1].class == entry->class && entries[i - 1].flags == entry->flags;
	return false;
}

static void change_plan(struct policy_trial_plan *plan, enum policy_trial_place (*place_of)(const char *path))
{
	struct policy *policy = &plan->policy;
	size_t count = 0;

	for (size_t i = 0; i < policy->files.plan_count; i++) {
		struct file_plan_entry entry = plan->entries[i];

		if (entry.class == FILE_WRITE) {
			enum policy_trial_place place = place_of(entry.path);

			plan->is_changed |= place != POLICY_TRIAL_NOTHING;
			entry.class = classes[place];
			plan->files[entry.rule].class = entry.class;
			if (entry.class == FILE_STAGE && is_repeated(plan->entries, count, &entry))
				continue;
		}
		plan->entries[count++] = entry;
	}
	policy->files.plan_count = count;
}

/* A rule that no mount stands for repeats the one above it. */
static void change_rest(struct policy_trial_plan *plan)
{
	const struct policy *policy = &plan->policy;

	for (size_t i = 0; i < policy->files.count; i++) {
		bool has_above = i < policy->files.exact_count && policy->files.parents[i] != UINT32_MAX;

		if (plan->files[i].class == FILE_WRITE)
			plan->files[i].class = has_above ? plan->files[policy->files.parents[i]].class : FILE_READ;
	}
}

static int change_classes(struct policy_trial_plan *plan, enum policy_trial_place (*place_of)(const char *path))
{
	const struct policy *policy = &plan->policy;

	plan->files = calloc(policy->files.count + 1, sizeof *plan->files);
	plan->entries = calloc(policy->files.plan_count + 1, sizeof *plan->entries);
	if (!plan->files || !plan->entries)
		return -ENOMEM;
	memcpy(plan->files, policy->files.rules, policy->files.count * sizeof *plan->files);
	memcpy(plan->entries, policy->files.plan, policy->files.plan_count * sizeof *plan->entries);
	change_plan(plan, place_of);
	change_rest(plan);
	plan->policy.files.rules = plan->files;
	plan->policy.files.plan = plan->entries;
	return 0;
}

int policy_trial_make(struct policy_trial_plan *ret_plan, const struct policy *policy,
		      enum policy_trial_place (*place_of)(const char *path))
{
	*ret_plan = (struct policy_trial_plan){ .policy = *policy };
	hide_network(ret_plan);
	hide_devices(ret_plan);
	ask_nobody(ret_plan);
	log_all(&ret_plan->policy);
	ret_plan->policy.stage.snapshots = STAGE_AUTO_OFF;
	return change_classes(ret_plan, place_of);
}

void policy_trial_done(struct policy_trial_plan *plan)
{
	free(plan->files);
	free(plan->entries);
	plan->files = NULL;
	plan->entries = NULL;
}
