/* SPDX-License-Identifier: Apache-2.0 */
#include "box/monitor.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#include "base/str.h"
#include "box/alert.h"
#include "box/noise.h"
#include "box/standing.h"
#include "box/state.h"
#include "box/tree-files.h"
#include "monitor/baseline.h"
#include "monitor/paths.h"
#include "monitor/score.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/identity.h"

/*
 * Each number is compared with one limit, which is worked out when the number first reaches what anybody would care
 * about: an event costs a hash at most.
 */

enum { LOCK_MS = 200, LOOK_MS = 5000, LOOK_SHARE = 200, MS_NS = 1000000 };

static const double REMARKABLE = 0.1; /* what goes along with an alert as evidence */

struct monitor {
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
static char *agent_of(const struct box *box)
{
	const char *program = box->run.request->argv[0] ? path_basename(box->run.request->argv[0]) : "";
	const struct run_standing *standing = box->run.request->standing;
	const char *agent = standing && standing->agent ? standing->agent : box->run.policy->policy->trust.agent;

	return agent ? str_dup(agent) : str_printf("%s %s", box->run.policy->policy->name, program);
}

static int tell_damaged(struct box *box)
{
	return alert_raise(box, &(struct alert){ .kind = ALERT_DAMAGED });
}

static int load(struct box *box, struct monitor *monitor)
{
	cleanup_free char *agent = agent_of(box);
	int r = agent ? baseline_path(monitor->path, sizeof monitor->path, box->run.request->state_dir, agent,
				      box->run.request->project)
		      : -ENOMEM;

	if (r == 0)
		r = baseline_load(&monitor->baseline, monitor->path);
	if (r == 0 || r == -ENOMEM)
		return r;
	if (r != -ENOENT && tell_damaged(box) < 0)
		return -EIO;
	return baseline_init(&monitor->baseline, agent ? agent : "", box->run.request->project);
}

static int open_monitor(struct box *box, struct monitor **ret_monitor)
{
	const struct monitor_settings *settings = &box->run.policy->policy->monitor;
	int r;

	*ret_monitor = box->monitor;
	if (box->monitor)
		return 0;
	box->monitor = calloc(1, sizeof *box->monitor);
	if (!box->monitor)
		return -ENOMEM;
	/* What first happens may be a mediated file call, which has the sandbox's ids. */
	identity_return();
	box->monitor->budget = (struct score_budget){ settings->sessions, settings->learn };
	r = load(box, box->monitor);
	*ret_monitor = box->monitor;
	return r;
}

void monitor_free(struct box *box)
{
	if (!box->monitor)
		return;
	for (size_t i = 0; i < MONITOR_SET_COUNT; i++)
		baseline_set_done(&box->monitor->met[i]);
	baseline_done(&box->monitor->baseline);
	free(box->monitor);
	box->monitor = NULL;
}

/* ---- what is told ---- */

static uint64_t limit_of(struct monitor *monitor, enum monitor_feature feature)
{
	if (!monitor->limits[feature]) {
		struct score_row row;

		score_row_init(&row, &monitor->baseline, feature);
		monitor->limits[feature] = score_limit(&row, feature, &monitor->budget);
	}
	return monitor->limits[feature];
}

static struct alert_evidence evidence_of(struct monitor *monitor, enum monitor_feature feature)
{
	const struct monitor_feature_text *text = &monitor_features[feature];
	struct alert_evidence evidence = {
		.name = text->name, .words = text->words, .is_bytes = text->is_bytes,
		.number = monitor->numbers[feature], .sessions = monitor->baseline.count,
		.limit = limit_of(monitor, feature),
	};
	struct score_row row;

	score_row_init(&row, &monitor->baseline, feature);
	evidence.median = score_median(&row);
	evidence.max = score_max(&row);
	evidence.chance = score_chance(&row, feature, evidence.number);
	for (size_t i = 0; feature < MONITOR_SET_COUNT && i < ALERT_EXAMPLES_MAX; i++)
		if (monitor->examples[feature][i][0])
			evidence.examples[i] = monitor->examples[feature][i];
	return evidence;
}

/* With all else that is remarkable: one number alone seldom says what happened. */
static int tell(struct box *box, struct monitor *monitor, enum monitor_feature first)
{
	struct alert_evidence evidence[MONITOR_FEATURE_COUNT];
	struct alert alert = { .kind = ALERT_UNUSUAL, .evidence = evidence, .evidence_count = 1 };

	evidence[0] = evidence_of(monitor, first);
	monitor->is_told[first] = true;
	for (enum monitor_feature feature = 0; feature < MONITOR_FEATURE_COUNT; feature++) {
		struct alert_evidence other;

		if (feature == first || !monitor->numbers[feature])
			continue;
		other = evidence_of(monitor, feature);
		if (other.chance > REMARKABLE || (other.is_bytes && other.number < monitor_features[feature].least))
			continue;
		monitor->is_told[feature] |= other.number >= other.limit;
		evidence[alert.evidence_count++] = other;
	}
	return alert_raise(box, &alert);
}

static int compare(struct box *box, struct monitor *monitor, enum monitor_feature feature)
{
	if (monitor->numbers[feature] < monitor_features[feature].least || monitor->is_told[feature] ||
	    monitor->numbers[feature] < limit_of(monitor, feature))
		return 0;
	return tell(box, monitor, feature);
}

/* ---- what is counted ---- */

static int count(struct box *box, enum monitor_feature feature, uint64_t amount)
{
	struct monitor *monitor;
	int r = open_monitor(box, &monitor);

	if (r < 0)
		return r;
	monitor->numbers[feature] += amount;
	return compare(box, monitor, feature);
}

static void keep_example(struct monitor *monitor, enum monitor_feature feature, const char *text)
{
	for (size_t i = 0; i < ALERT_EXAMPLES_MAX; i++) {
		char *example = monitor->examples[feature][i];

		if (*example)
			continue;
		if (str_format(example, ALERT_EXAMPLE_SIZE, "%.*s", ALERT_EXAMPLE_SIZE - 1, text) < 0)
			*example = 0;
		return;
	}
}

static int meet(struct box *box, enum monitor_feature feature, const char *text)
{
	struct monitor *monitor;
	uint64_t hash;
	int r = open_monitor(box, &monitor);

	if (r < 0)
		return r;
	hash = baseline_hash(&monitor->baseline, feature, text, strlen(text));
	r = baseline_set_add(&monitor->met[feature], hash, 0, monitor_features[feature].set_max);
	/* A session that met more than can be remembered was told long ago. */
	if (r != 1 || baseline_set_has(&monitor->baseline.sets[feature], hash))
		return r == -ENOMEM ? r : 0;
	keep_example(monitor, feature, text);
	return count(box, feature, 1);
}

static int on_file(struct box *box, const struct watch_file *event)
{
	int r = 0;

	if (event->access == WATCH_FILE_READ)
		return monitor_is_secret_path(event->path) && !canaries_have(box, event->path)
			       ? meet(box, MONITOR_SECRETS, event->path) : 0;
	if (event->errnum)
		return 0;
	if (event->access == WATCH_FILE_REMOVE)
		r = count(box, MONITOR_DELETES, 1);
	else if (event->access == WATCH_FILE_RENAME)
		r = count(box, MONITOR_RENAMES, 1);
	if (r == 0 && (monitor_is_startup_path(event->path) ||
		       (event->target && monitor_is_startup_path(event->target))))
		r = count(box, MONITOR_STARTUP, 1);
	return r;
}

static int on_exec(struct box *box, const struct event_exec *event)
{
	return event->is_refused ? 0 : meet(box, MONITOR_PROGRAMS, event->program);
}

static int on_lookup(struct box *box, const struct event_lookup *event)
{
	return event->is_of_address ? meet(box, MONITOR_HOSTS, event->name) : 0;
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

void monitor_prepare(struct box *box)
{
	static struct subscriber subscriber = {
		.types = 1 << EVENT_EXEC | 1 << EVENT_FILE | 1 << EVENT_LOOKUP | 1 << EVENT_ADDRESS |
			 1 << EVENT_CLOSED | 1 << EVENT_SYSCALL,
		.note = note,
	};

	subscriber.context = box;
	if (box->run.policy->policy->monitor.baseline)
		hub_subscribe(box->run.hub, &subscriber);
}

static void raise_to(struct monitor *monitor, enum monitor_feature feature, uint64_t number)
{
	if (number > monitor->numbers[feature])
		monitor->numbers[feature] = number;
}

static int take(struct box *box, struct monitor *monitor, enum monitor_feature feature, uint64_t number)
{
	if (number <= monitor->numbers[feature])
		return 0;
	monitor->numbers[feature] = number;
	return compare(box, monitor, feature);
}

/* Names that are gone from staged trees: of a directory that went with all below it one. A hundredth of the time. */
static int look_while_it_runs(struct box *box, struct monitor *monitor)
{
	uint64_t now_ns = clock_monotonic_ns(), took_ns;

	if (box->staging.stage_fd < 0 || now_ns < monitor->look_ns || box->run.ended != ENDED_NOT)
		return 0;
	if (monitor->look_ns && staged_count_look(&box->staged_count, &box->staging, now_ns)) {
		took_ns = clock_monotonic_ns() - now_ns;
		monitor->look_ns = now_ns + took_ns * LOOK_SHARE;
		raise_to(monitor, MONITOR_DELETES, box->staged_count.hidden);
	}
	if (monitor->look_ns < now_ns + LOOK_MS * (uint64_t)MS_NS)
		monitor->look_ns = now_ns + LOOK_MS * (uint64_t)MS_NS;
	return compare(box, monitor, MONITOR_DELETES);
}

int monitor_check(struct box *box)
{
	struct monitor *monitor = box->monitor;
	int r;

	if (!monitor)
		return 0;
	r = take(box, monitor, MONITOR_OUTPUT, box->run.output_bytes);
	if (r == 0)
		r = take(box, monitor, MONITOR_DENIALS, box->run.refusals->denials.total);
	if (r == 0)
		r = take(box, monitor, MONITOR_BURST, box->run.refusals->denials.burst_max);
	return r < 0 ? r : look_while_it_runs(box, monitor);
}

int monitor_timeout_ms(const struct box *box, uint64_t now_ns)
{
	const struct monitor *monitor = box->monitor;

	if (!monitor || box->staging.stage_fd < 0)
		return -1;
	return monitor->look_ns > now_ns ? (int)((monitor->look_ns - now_ns) / MS_NS) + 1 : 0;
}

/* Of files that the host has in staged trees, how many percent are gone inside: of interest from half of them on. */
static uint64_t deleted_share(const struct box *box)
{
	const struct stage_record *record = &box->staging.record;
	uint64_t deleted = box->staging.counts.deleted, bound = 2 * deleted, files = 0;

	for (size_t i = 0; deleted >= MONITOR_SHARE_FILES && i < record->tree_count && files <= bound; i++)
		files += tree_count_files(record->trees[i].path, bound - files + 1);
	return files && files <= bound ? (deleted < files ? deleted * 100 / files : 100) : 0;
}

/* All numbers first, so that what is told has them all. */
int monitor_look_at_staged(struct box *box)
{
	static const enum monitor_feature looked_at[] = { MONITOR_SCRAMBLED, MONITOR_DELETES, MONITOR_DELETED_SHARE,
							  MONITOR_STARTUP };
	const struct stage_counts *counts = &box->staging.counts;
	struct monitor *monitor = box->monitor;
	struct noise_count noise;
	int r = 0;

	if (!monitor || !box->staging.is_counted)
		return 0;
	/* What was mediated was counted as it happened, too: the larger one is nearer to the truth. */
	raise_to(monitor, MONITOR_DELETES, counts->deleted);
	raise_to(monitor, MONITOR_STARTUP, counts->flagged);
	raise_to(monitor, MONITOR_DELETED_SHARE, deleted_share(box));
	if (counts->added + counts->modified >= monitor_features[MONITOR_SCRAMBLED].least &&
	    noise_look(box->run.request, &noise) == 0)
		raise_to(monitor, MONITOR_SCRAMBLED, noise.scrambled);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(looked_at); i++)
		r = compare(box, monitor, looked_at[i]);
	return r;
}

/* ---- learning ---- */

static bool may_learn(const struct box *box)
{
	return box->monitor && !box->alerts.has_canary && !box->failure_status && box->run.ended != ENDED_NOT &&
	       box->run.ended != ENDED_POLICY && box->run.ended != ENDED_MEMORY && box->run.ended != ENDED_DISK &&
	       !(box->run.request->flags & (REQUEST_CHECK | REQUEST_TRIAL)) && box->run.request->tape != TAPE_REPLAY;
}

/* Others may have learnt meanwhile: theirs is taken up first. */
static int learn(struct box *box, struct monitor *monitor)
{
	uint64_t learnt[MONITOR_FEATURE_COUNT];
	struct baseline newest;
	int r;

	for (enum monitor_feature feature = 0; feature < MONITOR_FEATURE_COUNT; feature++)
		learnt[feature] = score_learnt(monitor->numbers[feature], limit_of(monitor, feature));
	/* In the first session everything is met for the first time. */
	for (size_t i = 0; i < MONITOR_SET_COUNT && !monitor->baseline.sessions; i++)
		learnt[i] = 0;
	if (baseline_load(&newest, monitor->path) == 0) {
		if (memcmp(newest.key, monitor->baseline.key, sizeof newest.key) == 0) {
			struct baseline old = monitor->baseline;

			monitor->baseline = newest;
			newest = old;
		}
		baseline_done(&newest);
	}
	r = baseline_learn(&monitor->baseline, learnt, monitor->met);
	return r < 0 ? r : baseline_store(&monitor->baseline, monitor->path);
}

/* What cannot be kept is not worth the end of a session: it is only not learnt. */
int monitor_learn(struct box *box)
{
	struct monitor *monitor = box->monitor;
	cleanup_fd int lock_fd = FD_NONE;
	int r = monitor_check(box);

	if (r < 0 || !may_learn(box))
		return r;
	lock_fd = fd_open_at(AT_FDCWD, box->run.request->state_dir, O_RDONLY | O_DIRECTORY, 0);
	if (lock_fd >= 0 && fd_lock_within(lock_fd, LOCK_EX, LOCK_MS) == 0)
		(void)!learn(box, monitor);
	return 0;
}

void monitor_to_json(const struct box *box, struct json *json)
{
	const struct monitor *monitor = box->monitor;

	if (!monitor)
		return;
	json_object_begin(json, "monitor");
	json_u64(json, "sessions", monitor->baseline.sessions);
	json_bool(json, "learning", monitor->baseline.count < monitor->budget.learn);
	for (size_t i = 0; i < MONITOR_FEATURE_COUNT; i++)
		json_u64(json, monitor_features[i].name, monitor->numbers[i]);
	json_object_end(json);
}
