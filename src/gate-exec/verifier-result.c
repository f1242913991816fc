/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-exec/verifier-result.h"

#include <string.h>

#include "audit/writer.h"
#include "base/num.h"
#include "base/str.h"
#include "supervise/run.h"

enum { RECORDED_MAX = 16 };

/* It comes from a process that has read hostile bytes: nothing in it may reach a terminal. */
static void copy_text(char out[VERIFY_TEXT_SIZE], const char *text)
{
	size_t size = 0;

	for (; text[size] && size < VERIFY_TEXT_SIZE - 1; size++)
		out[size] = text[size] >= ' ' && text[size] < 0x7f ? text[size] : '?';
	out[size] = 0;
}

static bool writes_in_place(const struct policy *policy)
{
	for (size_t i = 0; i < policy->files.count; i++)
		if (policy->files.rules[i].class == FILE_WRITE)
			return true;
	return false;
}

static bool has_limits(const struct policy *policy)
{
	static const enum resource needed[] = { RESOURCE_MEMORY, RESOURCE_PROCESSES, RESOURCE_DISK };

	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		if (policy->limits[needed[i]].value == NUM_UNLIMITED)
			return false;
	return true;
}

/* Whether the walls hold what a finding is about, whatever becomes of it: files that are staged or private, … */
static bool is_contained(const struct policy *policy, const struct verify_told *told)
{
	switch ((enum verify_held)told->held) {
	case VERIFY_HELD_FILES: return !writes_in_place(policy);
	case VERIFY_HELD_RIGHTS: return true;
	case VERIFY_HELD_LIMITS: return has_limits(policy);
	default: return false;
	}
}

static enum verify_action action_of(const struct run *run, const struct verify_told *told)
{
	const struct policy *policy = run->policy->policy;
	enum verify_row row = told->is_unknown ? VERIFY_UNKNOWN : (enum verify_row)told->severity;
	enum verify_action action = policy->verify.of[row][told->confidence];
	enum verify_action bound = policy->verify.of[VERIFY_CONTAINED][told->confidence];

	if (bound < action && is_contained(policy, told))
		action = bound;
	/* A trial is what it would take; the findings are shown with what came of it. */
	if (run->request->flags & REQUEST_TRIAL && (action == VERIFY_DRY_RUN || action == VERIFY_ASK))
		return VERIFY_NOTE;
	return action;
}

struct record {
	const struct run *run;
	const struct verify_answer *answer;
};

static void write_findings(struct json *json, const void *context)
{
	const struct record *record = context;
	uint32_t count = record->answer->count < RECORDED_MAX ? record->answer->count : RECORDED_MAX;

	json_array_begin(json, "findings");
	for (uint32_t i = 0; i < count; i++) {
		const struct verify_told *told = &record->answer->told[i];
		static const char *const severities[] = { "low", "medium", "high", "critical" };

		json_object_begin(json, NULL);
		json_string(json, "id", told->id);
		json_string(json, "severity", severities[told->severity]);
		json_string(json, "confidence", verify_sureness_names[told->confidence]);
		if (told->line)
			json_u64(json, "line", told->line);
		json_string(json, "reason", told->reason);
		json_string(json, "action", verify_action_names[action_of(record->run, told)]);
		json_object_end(json);
	}
	json_array_end(json);
	if (record->answer->total > count)
		json_u64(json, "left_out", record->answer->total - count);
	json_u64(json, "time_us", record->answer->time_us);
}

static const char *verdict_of(enum verify_action action)
{
	static const enum verdict verdicts[VERIFY_ACTION_COUNT] = {
		[VERIFY_OFF] = VERDICT_ALLOW, [VERIFY_NOTE] = VERDICT_ALLOW, [VERIFY_DRY_RUN] = VERDICT_SIMULATE,
		[VERIFY_ASK] = VERDICT_ASK, [VERIFY_DENY] = VERDICT_DENY,
	};

	return verdict_names[verdicts[action]];
}

/* For the end of the run: what a person should hear of though it ran. Less than high is in the log alone. */
static void count_noted(struct verifier_noted *noted, const struct verify_outcome *outcome, uint32_t severity)
{
	if (outcome->action != VERIFY_NOTE || severity < VERIFY_HIGH)
		return;
	if (!noted->count++)
		(void)!str_copy(noted->first, sizeof noted->first, outcome->id);
}

int verifier_conclude(struct run *run, struct verifier_noted *noted, pid_t pid, const char *exe,
		    const struct verify_answer *answer, struct verify_outcome *ret_outcome)
{
	struct record record = { run, answer };
	struct audit_event event = {
		.type = AUDIT_EXEC_VERIFY, .pid = pid, .subject = exe, .subject_size = strlen(exe),
		.write_detail = write_findings, .context = &record, .rule = ret_outcome->id,
	};

	ret_outcome->action = VERIFY_OFF;
	ret_outcome->is_unknown = false;
	for (uint32_t i = 0; i < answer->count; i++) {
		const struct verify_told *told = &answer->told[i];
		enum verify_action action = action_of(run, told);
		char id[VERIFY_TEXT_SIZE];

		if (action <= ret_outcome->action)
			continue;
		ret_outcome->action = action;
		ret_outcome->is_unknown = told->is_unknown;
		if (str_format(id, sizeof id, "verify.%s", told->id) < 0)
			(void)!str_copy(id, sizeof id, "verify");
		copy_text(ret_outcome->id, id);
		copy_text(ret_outcome->reason, told->reason);
		copy_text(ret_outcome->hint, told->instead);
	}
	event.verdict = verdict_of(ret_outcome->action);
	if (answer->count)
		count_noted(noted, ret_outcome, answer->told[0].severity);
	return ret_outcome->action == VERIFY_OFF ? 0 : audit_write(run->audit, &event);
}

int verifier_conclude_unknown(struct run *run, struct verifier_noted *noted, pid_t pid, const char *exe,
			      const char *why,
			    struct verify_outcome *ret_outcome)
{
	struct verify_answer answer = {
		.count = 1, .total = 1,
		.told[0] = { .severity = 1, .confidence = VERIFY_CERTAIN, .is_unknown = true, .id = "unknown.verifier",
			     .reason = why, .instead = "" },
	};

	return verifier_conclude(run, noted, pid, exe, &answer, ret_outcome);
}
