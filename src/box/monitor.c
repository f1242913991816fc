/* SPDX-License-Identifier: Apache-2.0 */
#include "box/monitor.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#include "base/str.h"
#include "box/alert.h"
#include "box/canaries.h"
#include "box/noise.h"
#include "box/standing.h"
#include "box/tree-files.h"
#include "build/staged-count.h"
#include "build/staging.h"
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

struct monitor_state {
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
static char *agent_of(const struct monitor *monitor)
{
	const char *program = monitor->run->request->argv[0] ? path_basename(monitor->run->request->argv[0]) : "";
	const struct run_standing *standing = monitor->run->request->standing;
	const char *agent = standing && standing->agent ? standing->agent : monitor->run->policy->policy->trust.agent;

	return agent ? str_dup(agent) : str_printf("%s %s", monitor->run->policy->policy->name, program);
}

static int tell_damaged(struct monitor *monitor)
{
	return alert_raise(monitor->alerts, &(struct alert){ .kind = ALERT_DAMAGED });
}

static int load(struct monitor *monitor, struct monitor_state *state)
{
	cleanup_free char *agent = agent_of(monitor);
	int r = agent ? baseline_path(state->path, sizeof state->path, monitor->run->request->state_dir, agent,
				      monitor->run->request->project)
		      : -ENOMEM;

	if (r == 0)
		r = baseline_load(&state->baseline, state->path);
	if (r == 0 || r == -ENOMEM)
		return r;
	if (r != -ENOENT && tell_damaged(monitor) < 0)
		return -EIO;
	return baseline_init(&state->baseline, agent ? agent : "", monitor->run->request->project);
}

static int open_monitor(struct monitor *monitor, struct monitor_state **ret_state)
{
	const struct monitor_settings *settings = &monitor->run->policy->policy->monitor;
	int r;

	*ret_state = monitor->state;
	if (monitor->state)
		return 0;
	monitor->state = calloc(1, sizeof *monitor->state);
	if (!monitor->state)
		return -ENOMEM;
	/* What first happens may be a mediated file call, which has the sandbox's ids. */
	identity_return();
	monitor->state->budget = (struct score_budget){ settings->sessions, settings->learn };
	r = load(monitor, monitor->state);
	*ret_state = monitor->state;
	return r;
}

void monitor_free(struct monitor *monitor)
{
	if (!monitor->state)
		return;
	for (size_t i = 0; i < MONITOR_SET_COUNT; i++)
		baseline_set_done(&monitor->state->met[i]);
	baseline_done(&monitor->state->baseline);
	free(monitor->state);
	monitor->state = NULL;
}

/* ---- what is told ---- */

static uint64_t limit_of(struct monitor_state *state, enum monitor_feature feature)
{
	if (!state->limits[feature]) {
		struct score_row row;

		score_row_init(&row, &state->baseline, feature);
		state->limits[feature] = score_limit(&row, feature, &state->budget);
	}
	return state->limits[feature];
}

static struct alert_evidence evidence_of(struct monitor_state *state, enum monitor_feature feature)
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
static int tell(struct monitor *monitor, struct monitor_state *state, enum monitor_feature first)
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
	return alert_raise(monitor->alerts, &alert);
}

static int compare(struct monitor *monitor, struct monitor_state *state, enum monitor_feature feature)
{
	if (state->numbers[feature] < monitor_features[feature].least || state->is_told[feature] ||
	    state->numbers[feature] < limit_of(state, feature))
		return 0;
	return tell(monitor, state, feature);
}

/* ---- what is counted ---- */

static int count(struct monitor *monitor, enum monitor_feature feature, uint64_t amount)
{
	struct monitor_state *state;
	int r = open_monitor(monitor, &state);

	if (r < 0)
		return r;
	state->numbers[feature] += amount;
	return compare(monitor, state, feature);
}

static void keep_example(struct monitor_state *state, enum monitor_feature feature, const char *text)
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

static int meet(struct monitor *monitor, enum monitor_feature feature, const char *text)
{
	struct monitor_state *state;
	uint64_t hash;
	int r = open_monitor(monitor, &state);

	if (r < 0)
		return r;
	hash = baseline_hash(&state->baseline, feature, text, strlen(text));
	r = baseline_set_add(&state->met[feature], hash, 0, monitor_features[feature].set_max);
	/* A session that met more than can be remembered was told long ago. */
	if (r != 1 || baseline_set_has(&state->baseline.sets[feature], hash))
		return r == -ENOMEM ? r : 0;
	keep_example(state, feature, text);
	return count(monitor, feature, 1);
}

static int on_file(struct monitor *monitor, const struct watch_file *event)
{
	int r = 0;

	if (event->access == WATCH_FILE_READ)
		return monitor_is_secret_path(event->path) && !canaries_have(monitor->canaries, event->path)
			       ? meet(monitor, MONITOR_SECRETS, event->path) : 0;
	if (event->errnum)
		return 0;
	if (event->access == WATCH_FILE_REMOVE)
		r = count(monitor, MONITOR_DELETES, 1);
	else if (event->access == WATCH_FILE_RENAME)
		r = count(monitor, MONITOR_RENAMES, 1);
	if (r == 0 && (monitor_is_startup_path(event->path) ||
		       (event->target && monitor_is_startup_path(event->target))))
		r = count(monitor, MONITOR_STARTUP, 1);
	return r;
}

static int on_exec(struct monitor *monitor, const struct event_exec *event)
{
	return event->is_refused ? 0 : meet(monitor, MONITOR_PROGRAMS, event->program);
}

static int on_lookup(struct monitor *monitor, const struct event_lookup *event)
{
	return event->is_of_address ? meet(monitor, MONITOR_HOSTS, event->name) : 0;
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
		return meet(context, MONITOR_HOSTS, detail);
	case EVENT_CLOSED:
		return count(context, MONITOR_EGRESS, *(const uint64_t *)detail);
	case EVENT_SYSCALL:
		return meet(context, MONITOR_SYSCALLS, detail);
	default:
		return 0;
	}
}

void monitor_prepare(struct monitor *monitor)
{
	static const uint32_t types = 1 << EVENT_EXEC | 1 << EVENT_FILE | 1 << EVENT_LOOKUP | 1 << EVENT_ADDRESS |
				      1 << EVENT_CLOSED | 1 << EVENT_SYSCALL;

	monitor->subscriber = (struct subscriber){ types, note, monitor, NULL };
	if (monitor->run->policy->policy->monitor.baseline)
		hub_subscribe(monitor->run->hub, &monitor->subscriber);
}

static void raise_to(struct monitor_state *state, enum monitor_feature feature, uint64_t number)
{
	if (number > state->numbers[feature])
		state->numbers[feature] = number;
}

static int take(struct monitor *monitor, struct monitor_state *state, enum monitor_feature feature, uint64_t number)
{
	if (number <= state->numbers[feature])
		return 0;
	state->numbers[feature] = number;
	return compare(monitor, state, feature);
}

/* Names that are gone from staged trees: of a directory that went with all below it one. A hundredth of the time. */
static int look_while_it_runs(struct monitor *monitor, struct monitor_state *state)
{
	uint64_t now_ns = clock_monotonic_ns(), took_ns;

	if (monitor->staging->stage_fd < 0 || now_ns < state->look_ns || monitor->run->ended != ENDED_NOT)
		return 0;
	if (state->look_ns && staged_count_look(monitor->staged_count, monitor->staging, now_ns)) {
		took_ns = clock_monotonic_ns() - now_ns;
		state->look_ns = now_ns + took_ns * LOOK_SHARE;
		raise_to(state, MONITOR_DELETES, monitor->staged_count->hidden);
	}
	if (state->look_ns < now_ns + LOOK_MS * (uint64_t)MS_NS)
		state->look_ns = now_ns + LOOK_MS * (uint64_t)MS_NS;
	return compare(monitor, state, MONITOR_DELETES);
}

int monitor_check(struct monitor *monitor)
{
	struct monitor_state *state = monitor->state;
	int r;

	if (!state)
		return 0;
	r = take(monitor, state, MONITOR_OUTPUT, monitor->run->output_bytes);
	if (r == 0)
		r = take(monitor, state, MONITOR_DENIALS, monitor->run->refusals->denials.total);
	if (r == 0)
		r = take(monitor, state, MONITOR_BURST, monitor->run->refusals->denials.burst_max);
	return r < 0 ? r : look_while_it_runs(monitor, state);
}

int monitor_timeout_ms(const struct monitor *monitor, uint64_t now_ns)
{
	const struct monitor_state *state = monitor->state;

	if (!state || monitor->staging->stage_fd < 0)
		return -1;
	return state->look_ns > now_ns ? (int)((state->look_ns - now_ns) / MS_NS) + 1 : 0;
}

/* Of files that the host has in staged trees, how many percent are gone inside: of interest from half of them on. */
static uint64_t deleted_share(const struct monitor *monitor)
{
	const struct stage_record *record = &monitor->staging->record;
	uint64_t deleted = monitor->staging->counts.deleted, bound = 2 * deleted, files = 0;

	for (size_t i = 0; deleted >= MONITOR_SHARE_FILES && i < record->tree_count && files <= bound; i++)
		files += tree_count_files(record->trees[i].path, bound - files + 1);
	return files && files <= bound ? (deleted < files ? deleted * 100 / files : 100) : 0;
}

/* All numbers first, so that what is told has them all. */
int monitor_look_at_staged(struct monitor *monitor)
{
	static const enum monitor_feature looked_at[] = { MONITOR_SCRAMBLED, MONITOR_DELETES, MONITOR_DELETED_SHARE,
							  MONITOR_STARTUP };
	const struct stage_counts *counts = &monitor->staging->counts;
	struct monitor_state *state = monitor->state;
	struct noise_count noise;
	int r = 0;

	if (!state || !monitor->staging->is_counted)
		return 0;
	/* What was mediated was counted as it happened, too: the larger one is nearer to the truth. */
	raise_to(state, MONITOR_DELETES, counts->deleted);
	raise_to(state, MONITOR_STARTUP, counts->flagged);
	raise_to(state, MONITOR_DELETED_SHARE, deleted_share(monitor));
	if (counts->added + counts->modified >= monitor_features[MONITOR_SCRAMBLED].least &&
	    noise_look(monitor->run->request, &noise) == 0)
		raise_to(state, MONITOR_SCRAMBLED, noise.scrambled);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(looked_at); i++)
		r = compare(monitor, state, looked_at[i]);
	return r;
}

/* ---- learning ---- */

static bool may_learn(const struct monitor *monitor, bool has_failed)
{
	return monitor->state && !monitor->alerts->has_canary && !has_failed && monitor->run->ended != ENDED_NOT &&
	       monitor->run->ended != ENDED_POLICY && monitor->run->ended != ENDED_MEMORY
		       && monitor->run->ended != ENDED_DISK &&
	       !(monitor->run->request->flags & (REQUEST_CHECK | REQUEST_TRIAL))
		       && monitor->run->request->tape != TAPE_REPLAY;
}

/* Others may have learnt meanwhile: theirs is taken up first. */
static int learn(struct monitor *monitor, struct monitor_state *state)
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
int monitor_learn(struct monitor *monitor, bool has_failed)
{
	struct monitor_state *state = monitor->state;
	cleanup_fd int lock_fd = FD_NONE;
	int r = monitor_check(monitor);

	if (r < 0 || !may_learn(monitor, has_failed))
		return r;
	lock_fd = fd_open_at(AT_FDCWD, monitor->run->request->state_dir, O_RDONLY | O_DIRECTORY, 0);
	if (lock_fd >= 0 && fd_lock_within(lock_fd, LOCK_EX, LOCK_MS) == 0)
		(void)!learn(monitor, state);
	return 0;
}

void monitor_to_json(const struct monitor *monitor, struct json *json)
{
	const struct monitor_state *state = monitor->state;

	if (!state)
		return;
	json_object_begin(json, "monitor");
	json_u64(json, "sessions", state->baseline.sessions);
	json_bool(json, "learning", state->baseline.count < state->budget.learn);
	for (size_t i = 0; i < MONITOR_FEATURE_COUNT; i++)
		json_u64(json, monitor_features[i].name, state->numbers[i]);
	json_object_end(json);
}
