/* SPDX-License-Identifier: Apache-2.0 */
#include "detect/anomaly.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#include "base/str.h"
#include "build/staged-count.h"
#include "build/staging.h"
#include "detect/agent-trust.h"
#include "detect/alerts.h"
#include "detect/canaries.h"
#include "detect/noise.h"
#include "detect/tree-files.h"
#include "monitor/baseline.h"
#include "monitor/paths.h"
#include "monitor/score.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/identity.h"
#include "supervise/refusals.h"
#include "supervise/run.h"
#include "watch/watch.h"

/*
 * Each number is compared with one limit, which is worked out when the number first reaches what anybody would care
 * about: an event costs a hash at most.
 */

enum { LOCK_MS = 200, LOOK_MS = 5000, LOOK_SHARE = 200, MS_NS = 1000000 };

static const double REMARKABLE = 0.1; /* what goes along with an alert as evidence */

struct anomaly_state {
	struct baseline baseline;
	char path[PATH_MAX];
	struct score_budget budget;
	uint64_t numbers[MONITOR_FEATURE_COUNT];
	uint64_t limits[MONITOR_FEATURE_COUNT];      /* 0: not worked out yet */
	bool is_told[MONITOR_FEATURE_COUNT];
	uint64_t look_ns;                            /* when to look at what is staged; 0: not yet */
	struct baseline_set met[MONITOR_SET_COUNT];  /* in this session */
	char examples[MONITOR_SET_COUNT][ALERT_EXAMPLES_MAX][ALERT_EXAMPLE_SIZE];
};

/* ---- the baseline ---- */

/* The name that its record goes by (`--agent`, the policy), or who else it may be told by. */
static char *agent_of(const struct anomaly *anomaly)
{
	const char *command = anomaly->run->request->command.argv[0], *program = command ? path_basename(command) : "";
	const struct run_agent *standing = anomaly->run->request->agent;
	const char *agent = standing && standing->agent ? standing->agent : anomaly->run->policy->policy->trust.agent;

	return agent ? str_dup(agent) : str_printf("%s %s", anomaly->run->policy->policy->name, program);
}

static int tell_damaged(struct anomaly *anomaly)
{
	return alerts_raise(anomaly->alerts, &(struct alert){ .kind = ALERT_DAMAGED });
}

static int load(struct anomaly *anomaly, struct anomaly_state *state)
{
	cleanup_free char *agent = agent_of(anomaly);
	int r = agent ? baseline_path(state->path, sizeof state->path, anomaly->run->request->state_dir, agent,
				      anomaly->run->request->project)
		      : -ENOMEM;

	if (r == 0)
		r = baseline_load(&state->baseline, state->path);
	if (r == 0 || r == -ENOMEM)
		return r;
	if (r != -ENOENT && tell_damaged(anomaly) < 0)
		return -EIO;
	return baseline_init(&state->baseline, agent ? agent : "", anomaly->run->request->project);
}

static int open_monitor(struct anomaly *anomaly, struct anomaly_state **ret_state)
{
	const struct monitor_settings *settings = &anomaly->run->policy->policy->monitor;
	int r;

	*ret_state = anomaly->state;
	if (anomaly->state)
		return 0;
	anomaly->state = calloc(1, sizeof *anomaly->state);
	if (!anomaly->state)
		return -ENOMEM;
	/* What first happens may be a mediated file call, which has the sandbox's ids. */
	identity_return();
	anomaly->state->budget = (struct score_budget){ settings->sessions, settings->learn };
	r = load(anomaly, anomaly->state);
	*ret_state = anomaly->state;
	return r;
}

static void anomaly_done(void *context)
{
	struct anomaly *anomaly = context;

	if (!anomaly->state)
		return;
	for (size_t i = 0; i < MONITOR_SET_COUNT; i++)
		baseline_set_done(&anomaly->state->met[i]);
	baseline_done(&anomaly->state->baseline);
	free(anomaly->state);
	anomaly->state = NULL;
}

/* ---- what is told ---- */

static uint64_t limit_of(struct anomaly_state *state, enum monitor_feature feature)
{
	if (!state->limits[feature]) {
		struct score_row row;

		score_row_init(&row, &state->baseline, feature);
		state->limits[feature] = score_limit(&row, feature, &state->budget);
	}
	return state->limits[feature];
}

static struct alert_evidence evidence_of(struct anomaly_state *state, enum monitor_feature feature)
{
	const struct monitor_feature_text *text = &monitor_features[feature];
	struct alert_evidence evidence = {
		.name = text->name, .words = text->words, .is_bytes = text->is_bytes,
		.number = state->numbers[feature], .sessions = state->baseline.count,
		.limit = limit_of(state, feature),
	};
	struct score_row row;

	score_row_init(&row, &state->baseline, feature);
	evidence.median = score_median(&row);
	evidence.max = score_max(&row);
	evidence.chance = score_chance(&row, feature, evidence.number);
	for (size_t i = 0; feature < MONITOR_SET_COUNT && i < ALERT_EXAMPLES_MAX; i++)
		if (state->examples[feature][i][0])
			evidence.examples[i] = state->examples[feature][i];
	return evidence;
}

/* With all else that is remarkable: one number alone seldom says what happened. */
static int raise_alert(struct anomaly *anomaly, struct anomaly_state *state, enum monitor_feature first)
{
	struct alert_evidence evidence[MONITOR_FEATURE_COUNT];
	struct alert alert = { .kind = ALERT_UNUSUAL, .evidence = evidence, .evidence_count = 1 };

	evidence[0] = evidence_of(state, first);
	state->is_told[first] = true;
	for (enum monitor_feature feature = 0; feature < MONITOR_FEATURE_COUNT; feature++) {
		struct alert_evidence other;

		if (feature == first || !state->numbers[feature])
			continue;
		other = evidence_of(state, feature);
		if (other.chance > REMARKABLE || (other.is_bytes && other.number < monitor_features[feature].least))
			continue;
		state->is_told[feature] |= other.number >= other.limit;
		evidence[alert.evidence_count++] = other;
	}
	return alerts_raise(anomaly->alerts, &alert);
}

static int compare(struct anomaly *anomaly, struct anomaly_state *state, enum monitor_feature feature)
{
	if (state->numbers[feature] < monitor_features[feature].least || state->is_told[feature] ||
	    state->numbers[feature] < limit_of(state, feature))
		return 0;
	return raise_alert(anomaly, state, feature);
}

/* ---- what is counted ---- */

static int count(struct anomaly *anomaly, enum monitor_feature feature, uint64_t amount)
{
	struct anomaly_state *state;
	int r = open_monitor(anomaly, &state);

	if (r < 0)
		return r;
	state->numbers[feature] += amount;
	return compare(anomaly, state, feature);
}

static void keep_example(struct anomaly_state *state, enum monitor_feature feature, const char *text)
{
	for (size_t i = 0; i < ALERT_EXAMPLES_MAX; i++) {
		char *example = state->examples[feature][i];

		if (*example)
			continue;
		if (str_format(example, ALERT_EXAMPLE_SIZE, "%.*s", ALERT_EXAMPLE_SIZE - 1, text) < 0)
			*example = 0;
		return;
	}
}

static int count_new(struct anomaly *anomaly, enum monitor_feature feature, const char *text)
{
	struct anomaly_state *state;
	uint64_t hash;
	int r = open_monitor(anomaly, &state);

	if (r < 0)
		return r;
	hash = baseline_hash(&state->baseline, feature, text, strlen(text));
	r = baseline_set_add(&state->met[feature], hash, 0, monitor_features[feature].set_max);
	/* A session that met more than can be remembered was told long ago. */
	if (r != 1 || baseline_set_has(&state->baseline.sets[feature], hash))
		return r == -ENOMEM ? r : 0;
	keep_example(state, feature, text);
	return count(anomaly, feature, 1);
}

static int on_file(struct anomaly *anomaly, const struct watch_file *event)
{
	int r = 0;

	if (event->access == WATCH_FILE_READ)
		return monitor_is_secret_path(event->path) && !canaries_have(anomaly->canaries, event->path)
			       ? count_new(anomaly, MONITOR_SECRETS, event->path) : 0;
	if (event->errnum)
		return 0;
	if (event->access == WATCH_FILE_REMOVE)
		r = count(anomaly, MONITOR_DELETES, 1);
	else if (event->access == WATCH_FILE_RENAME)
		r = count(anomaly, MONITOR_RENAMES, 1);
	if (r == 0 && (monitor_is_startup_path(event->path) ||
		       (event->target && monitor_is_startup_path(event->target))))
		r = count(anomaly, MONITOR_STARTUP, 1);
	return r;
}

static int on_exec(struct anomaly *anomaly, const struct event_exec *event)
{
	return event->is_refused ? 0 : count_new(anomaly, MONITOR_PROGRAMS, event->program);
}

static int on_lookup(struct anomaly *anomaly, const struct event_lookup *event)
{
	return event->is_of_address ? count_new(anomaly, MONITOR_HOSTS, event->name) : 0;
}

static int note(void *context, enum event_type type, const void *detail)
{
	switch (type) {
	case EVENT_EXEC:
		return on_exec(context, detail);
	case EVENT_FILE:
		return on_file(context, ((const struct event_file *)detail)->call);
	case EVENT_LOOKUP:
		return on_lookup(context, detail);
	case EVENT_ADDRESS:
		return count_new(context, MONITOR_HOSTS, detail);
	case EVENT_CLOSED:
		return count(context, MONITOR_EGRESS, *(const uint64_t *)detail);
	case EVENT_SYSCALL:
		return count_new(context, MONITOR_SYSCALLS, detail);
	default:
		return 0;
	}
}

void anomaly_prepare(struct anomaly *anomaly)
{
	static const uint32_t types = 1 << EVENT_EXEC | 1 << EVENT_FILE | 1 << EVENT_LOOKUP | 1 << EVENT_ADDRESS |
				      1 << EVENT_CLOSED | 1 << EVENT_SYSCALL;

	anomaly->subscriber = (struct subscriber){ types, note, anomaly, NULL };
	if (anomaly->run->policy->policy->monitor.baseline)
		hub_subscribe(anomaly->run->hub, &anomaly->subscriber);
}

static void raise_to(struct anomaly_state *state, enum monitor_feature feature, uint64_t number)
{
	if (number > state->numbers[feature])
		state->numbers[feature] = number;
}

static int raise_and_compare(struct anomaly *anomaly, struct anomaly_state *state, enum monitor_feature feature,
			     uint64_t number)
{
	if (number <= state->numbers[feature])
		return 0;
	state->numbers[feature] = number;
	return compare(anomaly, state, feature);
}

/* Names that are gone from staged trees: of a directory that went with all below it one. A hundredth of the time. */
static int look_while_it_runs(struct anomaly *anomaly, struct anomaly_state *state, uint64_t now_ns)
{
	uint64_t took_ns;

	if (anomaly->staging->stage_fd < 0 || now_ns < state->look_ns || anomaly->run->ended != ENDED_NOT)
		return 0;
	if (state->look_ns && staged_count_look(anomaly->staged_count, anomaly->staging, now_ns)) {
		took_ns = clock_monotonic_ns() - now_ns;
		state->look_ns = now_ns + took_ns * LOOK_SHARE;
		raise_to(state, MONITOR_DELETES, anomaly->staged_count->hidden);
	}
	if (state->look_ns < now_ns + LOOK_MS * (uint64_t)MS_NS)
		state->look_ns = now_ns + LOOK_MS * (uint64_t)MS_NS;
	return compare(anomaly, state, MONITOR_DELETES);
}

static int anomaly_check(void *context, uint64_t now_ns)
{
	struct anomaly *anomaly = context;
	struct anomaly_state *state = anomaly->state;
	int r;

	if (!state)
		return 0;
	r = raise_and_compare(anomaly, state, MONITOR_OUTPUT, anomaly->run->output_bytes);
	if (r == 0)
		r = raise_and_compare(anomaly, state, MONITOR_DENIALS, anomaly->run->refusals->denials.total);
	if (r == 0)
		r = raise_and_compare(anomaly, state, MONITOR_BURST, anomaly->run->refusals->denials.burst_max);
	return r < 0 ? r : look_while_it_runs(anomaly, state, now_ns);
}

static int anomaly_timeout_ms(const void *context, uint64_t now_ns)
{
	const struct anomaly *anomaly = context;
	const struct anomaly_state *state = anomaly->state;

	if (!state || anomaly->staging->stage_fd < 0)
		return -1;
	return state->look_ns > now_ns ? (int)((state->look_ns - now_ns) / MS_NS) + 1 : 0;
}

/*
 * Of files that the host has in staged trees, how many percent are gone inside: of interest from half of them on. What
 * is deleted of a system of the sandbox's own counts as no deletion, and its files as none that there were.
 */
static uint64_t deleted_share(const struct anomaly *anomaly)
{
	const struct stage_record *record = &anomaly->staging->record;
	uint64_t deleted = anomaly->staging->counts.deleted, bound = 2 * deleted, files = 0;

	for (size_t i = 0; deleted >= MONITOR_SHARE_FILES && i < record->tree_count && files <= bound; i++)
		if (!staging_is_system(anomaly->staging, anomaly->run->request, i))
			files += tree_count_files(record->trees[i].path, bound - files + 1);
	return files && files <= bound ? (deleted < files ? deleted * 100 / files : 100) : 0;
}

/* All numbers first, so that what is told has them all. */
int anomaly_look_at_staged(struct anomaly *anomaly)
{
	static const enum monitor_feature looked_at[] = { MONITOR_SCRAMBLED, MONITOR_DELETES, MONITOR_DELETED_SHARE,
							  MONITOR_STARTUP };
	const struct stage_counts *counts = &anomaly->staging->counts;
	struct anomaly_state *state = anomaly->state;
	struct noise_count noise;
	int r = 0;

	if (!state || !anomaly->staging->is_counted)
		return 0;
	/* What was mediated was counted as it happened, too: the larger one is nearer to the truth. */
	raise_to(state, MONITOR_DELETES, counts->deleted);
	raise_to(state, MONITOR_STARTUP, counts->flagged);
	raise_to(state, MONITOR_DELETED_SHARE, deleted_share(anomaly));
	if (counts->added + counts->modified >= monitor_features[MONITOR_SCRAMBLED].least &&
	    noise_look(anomaly->run->request, &noise) == 0)
		raise_to(state, MONITOR_SCRAMBLED, noise.scrambled);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(looked_at); i++)
		r = compare(anomaly, state, looked_at[i]);
	return r;
}

/* ---- learning ---- */

static bool may_learn(const struct anomaly *anomaly, bool has_failed)
{
	return anomaly->state && !anomaly->alerts->has_canary && !has_failed && anomaly->run->ended != ENDED_NOT &&
	       anomaly->run->ended != ENDED_POLICY && anomaly->run->ended != ENDED_MEMORY
		       && anomaly->run->ended != ENDED_DISK &&
	       !(anomaly->run->request->flags & (REQUEST_CHECK | REQUEST_TRIAL))
		       && anomaly->run->request->recording.mode != RECORDING_REPLAY;
}

/* Others may have learnt meanwhile: theirs is taken up first. */
static int learn(struct anomaly *anomaly, struct anomaly_state *state)
{
	uint64_t learnt[MONITOR_FEATURE_COUNT];
	struct baseline newest;
	int r;

	for (enum monitor_feature feature = 0; feature < MONITOR_FEATURE_COUNT; feature++)
		learnt[feature] = score_learnt(state->numbers[feature], limit_of(state, feature));
	/* In the first session everything is met for the first time. */
	for (size_t i = 0; i < MONITOR_SET_COUNT && !state->baseline.sessions; i++)
		learnt[i] = 0;
	if (baseline_load(&newest, state->path) == 0) {
		if (memcmp(newest.key, state->baseline.key, sizeof newest.key) == 0) {
			struct baseline old = state->baseline;

			state->baseline = newest;
			newest = old;
		}
		baseline_done(&newest);
	}
	r = baseline_learn(&state->baseline, learnt, state->met);
	return r < 0 ? r : baseline_store(&state->baseline, state->path);
}

/* What cannot be kept is not worth the end of a session: it is only not learnt. */
int anomaly_learn(struct anomaly *anomaly, bool has_failed)
{
	struct anomaly_state *state = anomaly->state;
	cleanup_fd int lock_fd = FD_NONE;
	int r = anomaly_check(anomaly, clock_monotonic_ns());

	if (r < 0 || !may_learn(anomaly, has_failed))
		return r;
	lock_fd = fd_open_at(AT_FDCWD, anomaly->run->request->state_dir, O_RDONLY | O_DIRECTORY, 0);
	if (lock_fd >= 0 && fd_lock_within(lock_fd, LOCK_EX, LOCK_MS) == 0)
		(void)!learn(anomaly, state);
	return 0;
}

void anomaly_to_json(const struct anomaly *anomaly, struct json *json)
{
	const struct anomaly_state *state = anomaly->state;

	if (!state)
		return;
	json_object_begin(json, "monitor");
	json_u64(json, "sessions", state->baseline.sessions);
	json_bool(json, "learning", state->baseline.count < state->budget.learn);
	for (size_t i = 0; i < MONITOR_FEATURE_COUNT; i++)
		json_u64(json, monitor_features[i].name, state->numbers[i]);
	json_object_end(json);
}

const struct module anomaly_module = {
	.name = "anomaly",
	.check = anomaly_check,
	.timeout_ms = anomaly_timeout_ms,
	.done = anomaly_done,
};
