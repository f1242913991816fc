/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/policy/subverbs.h"

#include <string.h>

#include "base/json.h"
#include "base/num.h"
#include "base/str.h"
#include "client/agent-trust.h"
#include "client/dirs.h"
#include "policy/policy.h"
#include "prog/atoll/verb/say.h"

enum { TEXT_MAX = 64 << 10, CONFIDENCE_MAX = 1000 };

/* Of one policy and one agent. */
struct explained {
	const struct policy *policy;
	const struct agent_trust_view *view;
};

static const struct trust_settings *settings_of(const struct explained *explained)
{
	return &explained->policy->trust;
}

/* What a run has whose record comes to this level, and whose caller is so confident. */
static enum trust_level run_level(const struct explained *explained, enum trust_level record,
				  enum trust_level confidence)
{
	struct trust_bounds bounds = explained->view->standing.bounds;
	const struct trust_settings *settings = settings_of(explained);

	bounds.confidence = confidence;
	if (record < settings->floor)
		record = settings->floor;
	return trust_effective(settings, record, &bounds);
}

/* The least confidence, in thousandths, that gives this level. */
static uint32_t least_confidence(enum trust_level level)
{
	uint32_t at = 0;

	while (at < CONFIDENCE_MAX && trust_confidence_level(at) < level)
		at++;
	return at;
}

/* ---- for people ---- */

static void put_policy(const struct explained *explained, struct buf *out)
{
	const struct policy *policy = explained->policy;
	const struct trust_settings *settings = settings_of(explained);
	char half_life[32];

	buf_printf(out, "  policy:  level %s", trust_level_names[policy->level]);
	if (!str_equal(policy->name, trust_level_names[policy->level])) {
		buf_put_text(out, ", by ");
		buf_put_escaped(out, policy->name, strlen(policy->name), 200);
	}
	if (!settings->has_level) {
		buf_put_text(out, "; it extends no level, so none can be lowered: it is run without an agent only\n");
		return;
	}
	num_format_duration(settings->half_life_ms, half_life);
	buf_printf(out, ": an unknown agent starts at %s, floor %s, ceiling %s\n", trust_level_names[settings->start],
		   trust_level_names[settings->floor], trust_level_names[settings->ceiling]);
	if (settings->probation_sessions)
		buf_printf(out, "           probation: %u clean sessions in a row at %s give one level more\n",
			   settings->probation_sessions, trust_level_names[settings->probation_at]);
	buf_printf(out, "           when it falls during a session: %s; strain is halved every %s\n",
		   trust_on_fall_names[settings->on_fall], half_life);
	if (settings->raise != TRUST_NONE)
		buf_printf(out, "           lent for each run of this policy: %s\n",
			   trust_level_names[settings->raise]);
}

static void put_record(const struct explained *explained, struct buf *out)
{
	const struct agent_trust_view *view = explained->view;

	if (view->fault != TRUST_FINE) {
		buf_printf(out, "  record:  cannot be used: %s; the agent has no trust without it\n",
			   trust_fault_texts[view->fault]);
		return;
	}
	if (!view->exists) {
		buf_printf(out, "  record:  none yet, so it comes to %s\n", trust_level_names[view->level]);
		return;
	}
	buf_printf(out, "  record:  comes to %s: granted %s, %u taken by strain %u.%u, %u clean session%s in a row\n",
		   trust_level_names[view->level], trust_level_names[view->state.granted], view->state.drop,
		   view->state.strain / TRUST_POINT, view->state.strain % TRUST_POINT / 100, view->state.clean,
		   view->state.clean == 1 ? "" : "s");
}

static void put_table(const struct explained *explained, struct buf *out)
{
	buf_printf(out, "\n  %-11s", "a record at");
	for (int level = 0; level < TRUST_COUNT; level++)
		buf_printf(out, level + 1 < TRUST_COUNT ? " %-7s" : " %s", trust_level_names[level]);
	buf_printf(out, "\n  %-11s", "runs at");
	for (int level = 0; level < TRUST_COUNT; level++)
		buf_printf(out, level + 1 < TRUST_COUNT ? " %-7s" : " %s",
			   trust_level_names[run_level(explained, level, TRUST_FULL)]);
	buf_put_text(out, "\n\n  with --confidence below ");
	for (int level = TRUST_LOW; level < TRUST_COUNT; level++) {
		uint32_t least = least_confidence(level);

		buf_printf(out, "%s0.%02u: %s at most", level > TRUST_LOW ? ", " : "", least / 10,
			   trust_level_names[level - 1]);
	}
	buf_put_char(out, '\n');
}

static void put_nobody(const struct explained *explained, struct buf *out)
{
	buf_printf(out, "a run without an agent is at %s, and nothing is recorded of it\n",
		   trust_level_names[explained->policy->level]);
	put_policy(explained, out);
	if (settings_of(explained)->has_level)
		put_table(explained, out);
	buf_put_text(out, "\n  whose record counts: trust: {agent: NAME} in the policy, or atoll run --agent NAME\n");
}

static void put_agent(const struct explained *explained, struct buf *out)
{
	const struct agent_trust_view *view = explained->view;
	const struct run_agent *standing = &view->standing;

	buf_printf(out, "agent %s would run at %s", standing->agent, trust_level_names[standing->level]);
	if (standing->level < explained->policy->level)
		buf_printf(out, ", not %s", trust_level_names[explained->policy->level]);
	buf_printf(out, "%s%s\n", view->why[0] ? ": " : "", view->why);
	put_policy(explained, out);
	put_record(explained, out);
	put_table(explained, out);
	if (view->exists)
		buf_printf(out, "\n  its history, and what would change it: atoll trust %s\n", standing->agent);
}

/* ---- JSON ---- */

static void put_settings_json(const struct trust_settings *settings, struct json *json)
{
	json_object_begin(json, "policy");
	json_bool(json, "has_level", settings->has_level);
	json_string(json, "start", trust_level_names[settings->start]);
	json_string(json, "floor", trust_level_names[settings->floor]);
	json_string(json, "ceiling", trust_level_names[settings->ceiling]);
	json_string(json, "raise", settings->raise == TRUST_NONE ? NULL : trust_level_names[settings->raise]);
	json_u64(json, "probation_sessions", settings->probation_sessions);
	json_string(json, "probation_at", trust_level_names[settings->probation_at]);
	json_string(json, "on_fall", trust_on_fall_names[settings->on_fall]);
	json_u64(json, "half_life_ms", settings->half_life_ms);
	json_object_end(json);
}

static void put_record_json(const struct agent_trust_view *view, struct json *json)
{
	json_object_begin(json, "record");
	json_bool(json, "exists", view->exists);
	json_bool(json, "usable", view->fault == TRUST_FINE);
	json_string(json, "level", trust_level_names[view->level]);
	json_string(json, "granted", view->state.has_grant ? trust_level_names[view->state.granted] : NULL);
	json_u64(json, "dropped", view->state.drop);
	json_fixed(json, "strain", view->state.strain);
	json_u64(json, "clean", view->state.clean);
	json_object_end(json);
}

static void put_json(const struct explained *explained, struct buf *out)
{
	const struct agent_trust_view *view = explained->view;
	struct json json;

	json_init(&json, out);
	json_object_begin(&json, NULL);
	json_string(&json, "agent", view->standing.agent);
	json_string(&json, "level", trust_level_names[view->standing.level]);
	json_string(&json, "policy_level", trust_level_names[explained->policy->level]);
	json_string(&json, "why", view->why[0] ? view->why : NULL);
	put_settings_json(settings_of(explained), &json);
	if (view->standing.agent)
		put_record_json(view, &json);
	else
		json_null(&json, "record");
	json_object_begin(&json, "runs_at");
	for (int level = 0; level < TRUST_COUNT; level++)
		json_string(&json, trust_level_names[level],
			    trust_level_names[run_level(explained, level, TRUST_FULL)]);
	json_object_end(&json);
	json_object_begin(&json, "confidence");
	for (int level = TRUST_LOW; level < TRUST_COUNT; level++)
		json_fixed(&json, trust_level_names[level], least_confidence(level));
	json_object_end(&json);
	json_object_end(&json);
	buf_put_char(out, '\n');
}

int policy_explain_trust(const struct policy *policy, const struct dirs *dirs, const char *agent, bool is_json,
			 struct err *err)
{
	struct agent_trust_request request = { .agent = agent };
	struct agent_trust_view view;
	struct explained explained = { policy, &view };
	cleanup_buf struct buf out;
	int r = agent_trust_look(&request, policy, dirs, &view, err);

	buf_init(&out, TEXT_MAX);
	if (r < 0)
		return r;
	/* Nobody's trust bounds nothing. */
	if (r == 1)
		view.standing.bounds.confidence = TRUST_FULL;
	if (is_json)
		put_json(&explained, &out);
	else if (r == 1)
		put_nobody(&explained, &out);
	else
		put_agent(&explained, &out);
	return say_out(&out, err);
}
