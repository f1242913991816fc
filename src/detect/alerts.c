/* SPDX-License-Identifier: Apache-2.0 */
#include "detect/alerts.h"

#include <limits.h>
#include <string.h>

#include "approve/notifier.h"
#include "approve/prompt.h"
#include "approve/queue.h"
#include "audit/writer.h"
#include "base/num.h"
#include "base/str.h"
#include "detect/agent-trust.h"
#include "detect/reactions.h"
#include "os/identity.h"
#include "os/proc.h"
#include "supervise/console.h"
#include "supervise/freeze.h"
#include "supervise/run.h"
#include "wire/gate.h"
#include "wire/notify.h"

_Static_assert((int)ALERTS_KEPT <= (int)NOTIFY_ALERTS_MAX, "a slow webhook keeps each alert until it is posted");

enum { SHOWN_PATH = 120, SHOWN_HOST = 80, SAID_MAX = ALERT_TEXT_MAX + 64, SUMMARY_MAX = 5 };

const char *const alert_kind_names[ALERT_KIND_COUNT] = {
	[ALERT_TOUCHED] = "canary.touched",
	[ALERT_SENT] = "canary.sent",
	[ALERT_UNUSUAL] = "unusual",
	[ALERT_OTHERWISE] = "trial.otherwise",
	[ALERT_DAMAGED] = "baseline.damaged",
	[ALERT_SECRET] = "secret",
	[ALERT_PLACEHOLDER] = "placeholder",
};

static const char question_rule[] = "monitor.freeze";

/*
 * A share of what is kept for each kind, and a smaller one for each thing that it is about: whoever raises many of one
 * kind on purpose pushes none of another kind, and none about something else, out of sight. What secrets and canaries
 * there are is up to the policy, and numbers are told once each.
 */
static const struct {
	uint8_t kind, thing;
} shares[ALERT_KIND_COUNT] = {
	[ALERT_TOUCHED] = { 16, 2 }, [ALERT_SENT] = { 16, 8 },	      [ALERT_UNUSUAL] = { 12, 12 },
	[ALERT_OTHERWISE] = { 8, 2 }, [ALERT_DAMAGED] = { 1, 1 },     [ALERT_SECRET] = { 16, 4 },
	[ALERT_PLACEHOLDER] = { 16, 4 },
};

_Static_assert(16 + 16 + 12 + 8 + 1 + 16 + 16 == ALERTS_KEPT, "there is room for the shares of all kinds");

/* ---- the record ---- */

static void put_evidence(struct json *json, const struct alert_evidence *evidence)
{
	json_object_begin(json, NULL);
	json_string(json, "what", evidence->name);
	json_u64(json, "number", evidence->number);
	json_u64(json, "usual", evidence->median);
	json_u64(json, "most", evidence->max);
	if (evidence->limit != UINT64_MAX)
		json_u64(json, "limit", evidence->limit);
	json_u64(json, "sessions", evidence->sessions);
	/* In millionths: the chance that a session like those before reaches it. */
	json_u64(json, "chance_ppm", (uint64_t)(evidence->chance * 1e6 + 0.5));
	json_array_begin(json, "new");
	for (size_t i = 0; i < ALERT_EXAMPLES_MAX && evidence->examples[i]; i++)
		json_bytes(json, NULL, evidence->examples[i], strlen(evidence->examples[i]));
	json_array_end(json);
	json_object_end(json);
}

static bool is_leak(const struct alert *alert)
{
	return alert->kind == ALERT_SECRET || alert->kind == ALERT_PLACEHOLDER;
}

static void write_detail(struct json *json, const void *context)
{
	const struct alert *alert = context;

	json_string(json, "alert", alert_kind_names[alert->kind]);
	if (is_leak(alert))
		json_string(json, "secret", alert->secret);
	else if (alert->canary)
		json_bytes(json, "canary", alert->canary, strlen(alert->canary));
	json_string(json, "where", alert->where);
	json_string(json, "spelling", alert->spelling);
	if (alert->host && !is_leak(alert))
		json_bytes(json, "host", alert->host, strlen(alert->host));
	if (alert->port)
		json_u64(json, "port", alert->port);
	if (alert->connection)
		json_u64(json, "connection", alert->connection);
	if (alert->kind == ALERT_SENT || is_leak(alert))
		json_string(json, "verdict", alert->is_refused ? "deny" : "allow");
	if (!alert->evidence_count)
		return;
	json_array_begin(json, "evidence");
	for (size_t i = 0; i < alert->evidence_count; i++)
		put_evidence(json, &alert->evidence[i]);
	json_array_end(json);
}

static const char *subject_of(const struct alert *alert)
{
	if (is_leak(alert))
		return alert->host;
	if (alert->canary)
		return alert->canary;
	if (alert->kind == ALERT_OTHERWISE)
		return alert->program;
	return alert->evidence_count ? alert->evidence[0].name : "baseline";
}

static const char *rule_of(const struct alert *alert)
{
	if (alert->canary)
		return "data.canaries";
	if (is_leak(alert))
		return "builtin.secrets";
	return alert->kind == ALERT_OTHERWISE ? "verify.dry-run" : "monitor.baseline";
}

static int record(struct alerts *alerts, const struct alert *alert)
{
	const char *subject = subject_of(alert);
	struct audit_event event = {
		.type = AUDIT_ALERT,
		.rule = rule_of(alert),
		.pid = alert->pid,
		.exe = alert->program,
		.subject = subject,
		.subject_size = strlen(subject),
		.write_detail = write_detail,
		.context = alert,
	};

	return audit_write(alerts->run->audit, &event);
}

static int log_freeze(const struct freeze *freeze, uint64_t frozen_ns)
{
	static const char subject[] = "everything stood still until a person was asked";
	struct audit_event event = { .type = AUDIT_ALERT, .rule = question_rule, .subject = subject,
				     .subject_size = strlen(subject) };

	return audit_write(freeze->run->audit, &event);
}

static const struct freeze_holder alert_freeze = { .thawed = log_freeze };

/* ---- the words ---- */

static void put_part(struct buf *out, const char *before, const char *text, size_t most)
{
	if (!text || !*text)
		return;
	buf_put_text(out, before);
	buf_put_escaped(out, text, strlen(text), most);
}

static void put_number(struct buf *out, const struct alert_evidence *evidence, uint64_t number)
{
	char text[32];

	if (evidence->is_bytes) {
		num_format_size_human(number, text);
		buf_put_text(out, text);
	} else {
		buf_printf(out, "%llu", (unsigned long long)number);
	}
}

static void put_unusual(struct buf *out, const struct alert *alert)
{
	for (size_t i = 0; i < alert->evidence_count && i < 4; i++) {
		const struct alert_evidence *evidence = &alert->evidence[i];

		buf_put_text(out, i ? ", " : "unusual: ");
		put_number(out, evidence, evidence->number);
		buf_printf(out, " %s (at most ", evidence->words);
		put_number(out, evidence, evidence->max);
		buf_printf(out, " in %u sessions)", evidence->sessions);
		put_part(out, ": ", evidence->examples[0], 60);
	}
}

static void put_thing(struct buf *out, const struct alert *alert)
{
	if (alert->kind == ALERT_PLACEHOLDER)
		put_part(out, "what stands for the secret ", alert->secret, SHOWN_PATH);
	else if (alert->kind == ALERT_SECRET)
		put_part(out, alert->canary ? "canary of the vault " : "secret ", alert->secret, SHOWN_PATH);
	else
		put_part(out, "canary ", alert->canary, SHOWN_PATH);
}

static void put_way(struct buf *out, const struct alert *alert)
{
	put_part(out, is_leak(alert) ? " was in " : ": its token was in ", alert->where, SHOWN_HOST);
	put_part(out, " to ", alert->host, SHOWN_HOST);
	if (alert->port)
		buf_printf(out, ":%u", alert->port);
	buf_put_text(out, alert->is_refused ? ", which was refused" : "");
}

static void put_words(struct buf *out, const struct alert *alert)
{
	if (alert->kind == ALERT_UNUSUAL) {
		put_unusual(out, alert);
		return;
	}
	if (alert->kind == ALERT_DAMAGED) {
		buf_put_text(out, "what was learnt of this project is damaged, and begins anew");
		return;
	}
	if (alert->kind == ALERT_OTHERWISE) {
		put_part(out, "", alert->program, SHOWN_PATH);
		put_part(out, " did otherwise than its trial had shown: ", alert->where, SHOWN_PATH);
		return;
	}
	put_thing(out, alert);
	if (alert->kind == ALERT_TOUCHED)
		buf_put_text(out, alert->is_linked ? " was given another name" : " was opened");
	else
		put_way(out, alert);
	put_part(out, " by ", alert->program, SHOWN_PATH);
	if (alert->pid)
		buf_printf(out, " (pid %d)", alert->pid);
}

static void format(const struct alert *alert, char text[ALERT_TEXT_MAX])
{
	struct buf out;

	buf_init_fixed(&out, text, ALERT_TEXT_MAX - 4);
	put_words(&out, alert);
	(void)buf_text(&out);
	text[ALERT_TEXT_MAX - 5] = 0;
}

/*
 * At once only where no stream of the command is the terminal: there it would stand in the middle of what a program
 * has drawn. At the end of the run it is said in any case.
 */
static void say(struct alerts *alerts, const char *text)
{
	char memory[SAID_MAX];
	struct buf out;

	prompt_ring(alerts->prompt);
	if (alerts->run->request->flags & (REQUEST_DETACH | REQUEST_QUIET) || console_detect())
		return;
	buf_init_fixed(&out, memory, sizeof memory);
	buf_printf(&out, "atoll: %s: alert: %s\n", alerts->run->request->session, text);
	if (buf_error(&out) == 0)
		run_request_tell(alerts->run->request, &out);
}

/* ---- to raise one ---- */

/* What it is about, as far as nobody inside chooses the words. */
static struct hash thing_of(const struct alert *alert)
{
	const char *thing = is_leak(alert) ? alert->secret : alert->canary ? alert->canary : alert->program;
	struct hash hash;

	hash_bytes(&hash, thing ? thing : "", thing ? strlen(thing) : 0);
	return hash;
}

/* thing: NULL counts all of the kind. */
static unsigned count_kept(const struct alerts *alerts, enum alert_kind kind, const struct hash *thing)
{
	unsigned count = 0;

	for (size_t i = 0; i < alerts->count; i++)
		count += alerts->kept[i].kind == kind &&
			 (!thing || memcmp(&alerts->kept[i].thing, thing, sizeof *thing) == 0);
	return count;
}

static bool has_room(const struct alerts *alerts, enum alert_kind kind, const struct hash *thing)
{
	return count_kept(alerts, kind, NULL) < shares[kind].kind &&
	       count_kept(alerts, kind, thing) < shares[kind].thing;
}

/* NULL: it is only counted. */
static const char *keep_text(struct alerts *alerts, const struct alert *alert)
{
	struct hash thing = thing_of(alert);
	struct alert_kept *kept;

	alerts->total++;
	if (!alerts->kept)
		alerts->kept = calloc(ALERTS_KEPT, sizeof *alerts->kept);
	if (!alerts->kept || !has_room(alerts, alert->kind, &thing))
		return NULL;
	kept = &alerts->kept[alerts->count++];
	format(alert, kept->text);
	kept->kind = alert->kind;
	kept->thing = thing;
	return kept->text;
}

/* The words of the newest one of this kind; NULL: none was kept. */
static const char *newest_of(const struct alerts *alerts, enum alert_kind kind)
{
	for (size_t i = alerts->count; i-- > 0;)
		if (alerts->kept[i].kind == kind)
			return alerts->kept[i].text;
	return NULL;
}

static enum monitor_reaction reaction_to(const struct alerts *alerts, const struct alert *alert)
{
	const struct monitor_settings *monitor = &alerts->run->policy->policy->monitor;

	if (alerts->run->request->flags & REQUEST_TRIAL)
		return MONITOR_NOTE;
	if (alert->canary)
		return monitor->canary;
	/* What was shown is what is done, or it is asked again. */
	if (alert->kind == ALERT_OTHERWISE)
		return MONITOR_FREEZE;
	return alert->kind == ALERT_UNUSUAL ? monitor->unusual : MONITOR_NOTE;
}

int alerts_raise(struct alerts *alerts, const struct alert *alert)
{
	enum monitor_reaction reaction = reaction_to(alerts, alert);
	const char *text = keep_text(alerts, alert);
	int r;

	/* A file call that is mediated raises it with the sandbox's ids, which can open none of what is needed here. */
	identity_return();
	if (reaction > alerts->wanted) {
		alerts->wanted = reaction;
		alerts->cause = newest_of(alerts, alert->kind);
	}
	alerts->has_canary |= alert->canary != NULL;
	/* Of what leaves, or nearly did, each is a record: what comes first must not hide what comes after. */
	if (!text && !is_leak(alert))
		return alerts->kept ? 0 : -ENOMEM;
	r = record(alerts, alert);
	if (r == 0)
		r = audit_flush(alerts->run->audit);
	if (r < 0 || !text)
		return r;
	say(alerts, text);
	r = notifier_alert(alerts->notifier, alert_kind_names[alert->kind], text);
	if (r < 0 || alert->kind == ALERT_DAMAGED)
		return r;
	return agent_trust_note(alerts->agent, alert->canary ? TRUST_CANARY : TRUST_ALERT, text);
}

/* ---- what the gates saw ---- */

/* A secret where it has no business to be. What a planted canary stands for is told by its path alone. */
static int on_leak(struct alerts *alerts, const struct gate_request *request)
{
	const struct policy *policy = alerts->run->policy->policy;
	const struct gate_leak *leak = &request->leak;
	const struct gate_open *open = &request->open;
	char program[PATH_MAX];
	struct alert alert = {
		.where = leak->where, .host = open->host, .port = (uint16_t)open->port, .is_refused = leak->is_refused,
		.pid = (pid_t)open->pid,
	};

	if (strv_has(policy->data.canary_files, leak->secret)) {
		alert.kind = ALERT_SENT;
		alert.canary = leak->secret;
	} else {
		alert.kind = leak->is_placeholder ? ALERT_PLACEHOLDER : ALERT_SECRET;
		alert.secret = leak->secret;
		alert.canary = strv_has(policy->data.canaries, leak->secret) ? leak->secret : NULL;
		alert.connection = open->id;
	}
	if (alert.pid && proc_program(alert.pid, program, sizeof program) == 0)
		alert.program = program;
	return alerts_raise(alerts, &alert);
}

static int note(void *context, enum event_type type, const void *detail)
{
	const struct event_trial *trial = detail;

	if (type == EVENT_LEAK)
		return on_leak(context, detail);
	return alerts_raise(context, &(struct alert){ .kind = ALERT_OTHERWISE, .where = trial->text,
						     .program = trial->program });
}

void alerts_prepare(struct alerts *alerts)
{
	alerts->subscriber = (struct subscriber){ 1 << EVENT_LEAK | 1 << EVENT_TRIAL_DIFFERS, note, alerts, NULL };
	hub_subscribe(alerts->run->hub, &alerts->subscriber);
}

/* ---- what is done about it ---- */

static int on_answer(void *context, uint64_t token, const struct queue_outcome *outcome)
{
	struct alerts *alerts = context;

	alerts->is_asking = false;
	/* A person's no ends it; silence does not, but nothing goes out any more. */
	if (outcome->verdict == QUEUE_DENIED)
		run_end(alerts->run, ENDED_STOPPED);
	else if (outcome->verdict != QUEUE_ALLOWED)
		alerts->wanted = MONITOR_TIGHTEN;
	return freeze_is_held_by(alerts->run->freeze, &alert_freeze) ? freeze_end(alerts->run->freeze) : 0;
}

static int begin_question(struct alerts *alerts)
{
	const char *text = alerts->cause ? alerts->cause : "a canary was sent";
	struct queue_request request = {
		.action = { .kind = ACTION_ALERT, .subject = text },
		.decision = { VERDICT_ASK, { question_rule, "", 0 },
			      "an alert has everything stand still until a person says how it goes on", "", NULL },
	};
	struct queue_waiter waiter = { .done = on_answer, .context = alerts };
	struct queue_outcome outcome;
	int r = queue_begin(alerts->queue, &request, &waiter, &outcome);

	alerts->is_asking = r == 1;
	if (r)
		return r < 0 ? r : 0;
	return on_answer(alerts, 0, &outcome);
}

static int freeze_and_ask(struct alerts *alerts)
{
	/* The question has an end of its own. */
	int r = freeze_begin_soon(alerts->run->freeze, &alert_freeze, "alert", UINT64_MAX);

	if (r == -EBUSY || r == -ESHUTDOWN)
		return 0; /* a snapshot is under way: at the next turn */
	alerts->wanted = MONITOR_NOTE;
	/* What cannot be stopped is at least cut off. */
	if (r < 0) {
		alerts->wanted = MONITOR_TIGHTEN;
		return 0;
	}
	alerts->was_asked = true;
	return begin_question(alerts);
}

static int alerts_check(void *context, uint64_t now_ns)
{
	struct alerts *alerts = context;

	if (alerts->wanted == MONITOR_NOTE || alerts->run->is_dead || !alerts->run->watch)
		return 0;
	if (alerts->wanted == MONITOR_FREEZE)
		return alerts->is_asking ? 0 : freeze_and_ask(alerts);
	if (!alerts->is_tightened && alerts->reactions->close_network(alerts->reactions->context) == -EBUSY)
		return 0;
	alerts->is_tightened = true;
	alerts->wanted = MONITOR_NOTE;
	return 0;
}

/* ---- afterwards ---- */

bool alerts_hold_apply(const struct alerts *alerts)
{
	const struct monitor_settings *monitor = &alerts->run->policy->policy->monitor;

	return (alerts->has_canary && monitor->canary == MONITOR_FREEZE) ||
	       (alerts->total && monitor->unusual == MONITOR_FREEZE);
}

void alerts_to_json(const struct alerts *alerts, struct json *json)
{
	json_object_begin(json, "alerts");
	json_u64(json, "total", alerts->total);
	json_bool(json, "network_closed", alerts->is_tightened);
	json_bool(json, "asked", alerts->was_asked);
	json_array_begin(json, "list");
	for (size_t i = 0; i < alerts->count; i++) {
		json_object_begin(json, NULL);
		json_string(json, "kind", alert_kind_names[alerts->kept[i].kind]);
		json_string(json, "text", alerts->kept[i].text);
		json_object_end(json);
	}
	json_array_end(json);
	json_object_end(json);
}

/* The first ones, and whatever is the first of its kind about something. */
static bool is_in_summary(const struct alerts *alerts, size_t index)
{
	struct alerts before = { .kept = alerts->kept, .count = index };

	return index < SUMMARY_MAX || !count_kept(&before, alerts->kept[index].kind, &alerts->kept[index].thing);
}

void alerts_put_summary(const struct alerts *alerts, struct buf *out)
{
	size_t shown = 0;

	if (!alerts->total)
		return;
	buf_printf(out, "atoll: %s: %llu alert%s:\n", alerts->run->request->session, (unsigned long long)alerts->total,
		   alerts->total == 1 ? "" : "s");
	for (size_t i = 0; i < alerts->count; i++) {
		if (!is_in_summary(alerts, i))
			continue;
		buf_printf(out, "  %s\n", alerts->kept[i].text);
		shown++;
	}
	if (alerts->total > shown)
		buf_put_text(out, "  …\n");
	if (alerts->is_tightened)
		buf_put_text(out, "  the network was closed\n");
	buf_printf(out, "  the evidence: atoll alerts %s\n", alerts->run->request->session);
}

static void alerts_done(void *context)
{
	struct alerts *alerts = context;

	free(alerts->kept);
	alerts->kept = NULL;
	alerts->count = 0;
}

const struct module alerts_module = {
	.name = "alerts",
	.check = alerts_check,
	.done = alerts_done,
};
