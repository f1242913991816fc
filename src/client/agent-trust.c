/* SPDX-License-Identifier: Apache-2.0 */
#include "client/agent-trust.h"

#include <string.h>

#include "base/buf.h"
#include "base/num.h"
#include "base/str.h"
#include "session/record.h"

enum { NS_PER_S = 1000000000, NS_PER_MS = 1000000, CAUSE_SHOWN = 60 };

/* The state as the box will find it when it begins the session: what ended unseen has been counted. */
static struct trust_state state_at_start(const struct trust_book *book, const struct trust_settings *settings,
					 const struct dirs *dirs)
{
	char sessions[TRUST_OPEN_MAX][SESSION_ID_SIZE];
	struct trust_state state = trust_book_state(book);
	uint64_t now_s = clock_realtime_ns() / NS_PER_S;
	size_t count = book->fault == TRUST_FINE ? trust_book_open(book, sessions) : 0;

	for (size_t i = 0; i < count; i++) {
		cleanup_session_record struct session_record record = { 0 };

		if (session_load_live(dirs->state, sessions[i], &record) == -ENOENT)
			state = trust_step(&state, settings, TRUST_KILLED, TRUST_NONE, now_s);
	}
	if (book->fault == TRUST_FINE)
		state = trust_step(&state, settings, TRUST_BEGUN, TRUST_NONE, now_s);
	state.strain = trust_strain_at(&state, settings, now_s);
	state.strain_s = now_s > state.strain_s ? now_s : state.strain_s;
	return state;
}

/* ---- why it is lower ---- */

/* The last thing that took a level; NULL: none that is remembered. What is said again stands behind what came later. */
static const struct trust_entry *last_fall(const struct trust_book *book)
{
	const struct trust_entry *last = NULL;

	for (size_t i = 0; i < book->count; i++) {
		const struct trust_entry *entry = &book->entries[i];

		if ((entry->after < entry->before || entry->event == TRUST_RECALLED) &&
		    (!last || entry->time_ns >= last->time_ns))
			last = entry;
	}
	return last;
}

static void put_fall(struct buf *out, const struct trust_entry *entry)
{
	uint64_t now_ns = clock_realtime_ns(), ago_ns = now_ns > entry->time_ns ? now_ns - entry->time_ns : 0;
	char ago[32];

	num_format_duration_human(ago_ns / NS_PER_MS, ago);
	if (entry->event == TRUST_RECALLED) {
		buf_put_escaped(out, entry->cause, strlen(entry->cause), CAUSE_SHOWN);
		buf_printf(out, " %s ago", ago);
		return;
	}
	buf_printf(out, "%s", trust_rules[entry->event].words);
	if (*entry->cause) {
		buf_put_text(out, " (");
		buf_put_escaped(out, entry->cause, strlen(entry->cause), CAUSE_SHOWN);
		buf_put_char(out, ')');
	}
	buf_printf(out, " %s ago", ago);
}

static void put_why(struct buf *out, const struct trust_book *book, const struct trust_settings *settings,
		    const struct trust_state *state)
{
	const struct trust_entry *fall = last_fall(book);

	if (settings->probation_sessions && state->granted == settings->probation_at && !state->drop)
		buf_printf(out, "%u of the %u clean sessions of its probation", state->clean,
			   settings->probation_sessions);
	else if (fall)
		put_fall(out, fall);
	else
		buf_put_text(out, book->exists ? "that is what it was granted"
					       : "that is where an unknown agent starts");
}

/* Why the run has no more than it has. */
static void put_reason(struct buf *out, const struct agent_trust_view *view, const struct trust_book *book,
		       const struct policy *policy)
{
	const struct run_agent *standing = &view->standing;
	const struct trust_settings *settings = &policy->trust;

	if (view->fault != TRUST_FINE)
		buf_printf(out, "its record cannot be used: %s; `atoll trust %s --reset` begins a new one",
			   trust_fault_texts[view->fault], standing->agent);
	else if (standing->level >= policy->level)
		return;
	else if (standing->bounds.confidence == standing->level && view->level > standing->level)
		buf_put_text(out, "so little confidence was given");
	else if (settings->ceiling == standing->level && view->level >= standing->level &&
		 view->state.granted >= view->level)
		buf_put_text(out, "that is the policy's ceiling");
	else {
		put_why(out, book, settings, &view->state);
		buf_printf(out, "; more: atoll trust %s", standing->agent);
	}
}

/* ---- the level ---- */

static int refuse_levelless(const struct policy *policy, struct err *err)
{
	char shown[ERR_QUOTE_SIZE];

	err_set(err, ERR_POLICY, EINVAL, "trust", "the policy %s extends no trust level, so no level can be lowered",
		err_quote(shown, policy->name));
	err_hint(err, "write `extends: medium` in it, or leave --agent and --confidence out");
	return -EINVAL;
}

static int find_confidence(const char *text, enum trust_level *ret_level, struct err *err)
{
	char shown[ERR_QUOTE_SIZE];
	uint32_t confidence = 1000;

	*ret_level = TRUST_FULL;
	if (!text)
		return 0;
	if (trust_confidence_parse(text, &confidence) < 0) {
		err_set(err, ERR_USAGE, EINVAL, "run", "%s is not a confidence", err_quote(shown, text));
		err_hint(err, "write low, medium, high, or a number from 0 to 1");
		return -EINVAL;
	}
	*ret_level = trust_confidence_level(confidence);
	return 0;
}

static enum trust_level lower(enum trust_level a, enum trust_level b)
{
	return a < b ? a : b;
}

static int judge_agent(const struct policy *policy, const struct dirs *dirs, struct agent_trust_view *view,
		       struct err *err)
{
	struct trust_home home = { dirs->state, dirs->runtime };
	struct run_agent *standing = &view->standing;
	cleanup_trust_book struct trust_book book;
	struct trust_bounds bounds = standing->bounds;
	struct buf why;
	int r = trust_book_read(&home, standing->agent, &book);

	if (r < 0)
		return err_set(err, ERR_INTERNAL, -r, "trust", "the record of agent %s cannot be read: %s",
			       standing->agent, strerror(-r));
	view->fault = book.fault;
	view->exists = book.exists;
	view->state = state_at_start(&book, &policy->trust, dirs);
	view->level = trust_level_of(&view->state, &policy->trust);
	if (book.fault != TRUST_FINE)
		bounds.lent = TRUST_NONE;
	standing->level = trust_effective(&policy->trust, view->level, &bounds);
	buf_init_fixed(&why, view->why, sizeof view->why);
	put_reason(&why, view, &book, policy);
	(void)buf_text(&why);
	return 0;
}

/* A task's policy says so itself; of a token and a task the one that lends more counts. */
static void lend(const struct agent_trust_request *request, const struct policy *policy, struct run_agent *standing)
{
	standing->bounds.lent = request->lent_by ? request->lent : TRUST_NONE;
	standing->lent_by = request->lent_by;
	if (policy->trust.raise <= standing->bounds.lent)
		return;
	standing->bounds.lent = policy->trust.raise;
	standing->lent_by = policy->name;
}

static int find(const struct agent_trust_request *request, const struct policy *policy, const struct dirs *dirs,
		struct agent_trust_view *view, struct err *err)
{
	const char *agent = request->agent ? request->agent : policy->trust.agent;
	struct run_agent *standing = &view->standing;
	int r;

	*view = (struct agent_trust_view){
		.standing = { .agent = agent, .level = policy->level, .bounds.policy = policy->level },
	};
	if (!agent && !request->confidence)
		return 1;
	r = find_confidence(request->confidence, &standing->bounds.confidence, err);
	if (r < 0)
		return r;
	if (!policy->trust.has_level)
		return refuse_levelless(policy, err);
	lend(request, policy, standing);
	if (agent)
		return judge_agent(policy, dirs, view, err);
	standing->level = lower(policy->level, standing->bounds.confidence);
	return 0;
}

int agent_trust_look(const struct agent_trust_request *request, const struct policy *policy, const struct dirs *dirs,
		  struct agent_trust_view *ret_view, struct err *err)
{
	return find(request, policy, dirs, ret_view, err);
}

int agent_trust_find(const struct agent_trust_request *request, const struct policy *policy, const struct dirs *dirs,
		  struct run_agent *ret_standing, char ret_note[AGENT_TRUST_NOTE_SIZE], struct err *err)
{
	struct agent_trust_view view;
	const struct run_agent *standing = &view.standing;
	int r = find(request, policy, dirs, &view, err);
	struct buf note;

	ret_note[0] = 0;
	if (r != 0)
		return r;
	buf_init_fixed(&note, ret_note, AGENT_TRUST_NOTE_SIZE);
	if (view.why[0])
		buf_printf(&note, "atoll: agent %s runs at %s, not %s: %s\n", standing->agent,
			   trust_level_names[standing->level], trust_level_names[policy->level], view.why);
	else if (standing->level < policy->level)
		buf_printf(&note, "atoll: the run is at level %s, not %s, because of the low confidence that was "
				  "given\n",
			   trust_level_names[standing->level], trust_level_names[policy->level]);
	(void)buf_text(&note);
	*ret_standing = *standing;
	return 0;
}
