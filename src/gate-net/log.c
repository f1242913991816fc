/* SPDX-License-Identifier: Apache-2.0 */

#include <limits.h>
#include <string.h>

#include "base/str.h"
#include "gate-net/denial.h"
#include "gate-net/gate.h"
#include "gate-net/link.h"
#include "gate-net/log.h"
#include "http/target.h"
#include "os/clock.h"
#include "policy/publish.h"
#include "supervise/hub.h"
#include "supervise/refusals.h"
#include "supervise/run.h"
#include "watch/watch.h"

enum { TYPE_A = 1, TYPE_AAAA = 28, RULE_SIZE = 96, REASON_SIZE = 384, MS_NS = 1000000, CUT_SIZE = sizeof "…" };

/* While a policy changes, both must allow it: whichever of them the gate went by. */
static struct decision decide(const struct net_gate *gate, const struct action *action)
{
	struct decision decision = policy_decide(gate->run->network_policy, action);

	if (decision.verdict != VERDICT_ALLOW || !gate->next_policy)
		return decision;
	return policy_decide(gate->next_policy, action);
}

static struct action connection_of(const struct gate_open *open)
{
	return (struct action){ .kind = ACTION_NET_CONNECT, .subject = open->host, .port = (uint16_t)open->port,
				.is_outward = true };
}

int gate_log_arrived(struct net_gate *gate, const struct gate_arrived *arrived, const struct publish_rule *rule)
{
	struct action action = { .kind = ACTION_NET_CONNECT, .subject = "127.0.0.1", .port = rule->port };
	struct decision decision = { VERDICT_ALLOW, rule->origin, "the port is published", "", NULL };
	char from[PUBLISH_TEXT_SIZE], published[PUBLISH_TEXT_SIZE];
	struct net_detail detail = { .port = rule->port, .id = arrived->id, .detail_key = "from", .detail = from,
				     .published = published };

	if (str_format(from, sizeof from, "%s:%u", rule->is_inet6 ? "[::1]" : "127.0.0.1", arrived->source.port) < 0)
		from[0] = 0;
	publish_host_format(rule, published);
	gate->run->refusals->allowed++;
	if (gate->run->network_policy->audit.network == AUDIT_OFF)
		return 0;
	return gate_record(gate->run, AUDIT_NET_CONNECT, &action, &decision, 0, &detail);
}

static void take_outcome(struct decision *decision, const struct queue_outcome *outcome)
{
	decision->verdict = outcome->verdict == QUEUE_ALLOWED ? VERDICT_ALLOW : VERDICT_DENY;
	decision->rule = outcome->rule;
	decision->reason = outcome->reason;
	decision->hint = outcome->hint;
}

/* What cannot wait for a person is refused, and listed: he may allow the next try. */
static int deny_unasked(struct net_gate *gate, enum audit_type type, const struct action *action,
			struct decision decision,
			pid_t pid, const struct net_detail *detail)
{
	struct gate_open open = { .pid = (uint32_t)pid, .host = action->subject, .port = action->port };
	struct queue_outcome outcome;
	int r = gate_questions_list(gate, &open, &decision, &outcome);

	if (r < 0)
		return r;
	take_outcome(&decision, &outcome);
	return gate_deny_guess(gate, type, action, decision, pid, detail);
}

static int log_lookup(struct net_gate *gate, const struct gate_lookup *lookup, bool is_of_address)
{
	struct action action = { .kind = ACTION_NET_DNS, .subject = lookup->name };
	struct decision decision = decide(gate, &action);
	struct net_detail detail = { .type = lookup->type };

	if (lookup->is_paused)
		return gate_deny_paused(gate, AUDIT_NET_DNS, &action, 0, &detail);
	if (!lookup->is_allowed && is_of_address && decision.verdict == VERDICT_ASK)
		return deny_unasked(gate, AUDIT_NET_DNS, &action, decision, 0, &detail);
	if (!lookup->is_allowed && is_of_address)
		return gate_deny_guess(gate, AUDIT_NET_DNS, &action, decision, 0, &detail);
	/* Programs ask for more than they need (services, reverse names): a refusal of that is nobody's problem. */
	if (!lookup->is_allowed)
		decision.verdict = VERDICT_DENY;
	else
		gate->run->refusals->allowed++;
	if (gate->run->network_policy->audit.network == AUDIT_OFF)
		return 0;
	return gate_record(gate->run, AUDIT_NET_DNS, &action, &decision, 0, &detail);
}

int gate_log_lookup(struct net_gate *gate, const struct gate_lookup *lookup)
{
	const struct event_lookup event = { lookup->name, !lookup->is_allowed,
					    lookup->type == TYPE_A || lookup->type == TYPE_AAAA };
	int r = log_lookup(gate, lookup, event.is_of_address);

	return r < 0 ? r : hub_publish(gate->run->hub, EVENT_LOOKUP, &event);
}

static int judge_open(struct net_gate *gate, const struct gate_open *open, bool is_final)
{
	struct action action = connection_of(open);
	struct decision decision = decide(gate, &action);
	struct net_detail detail = { .port = open->port, .id = open->id };
	struct queue_outcome outcome;
	int r;

	if (decision.verdict == VERDICT_ASK && is_final && !gate_is_paused(gate)) {
		r = gate_questions_begin(gate, open, &decision, &outcome);
		if (r)
			return r < 0 ? r : GATE_LOG_WAITS;
		take_outcome(&decision, &outcome);
	}
	if (decision.verdict < VERDICT_SIMULATE || gate_is_paused(gate)) {
		if (!is_final)
			return 0;
		r = decision.verdict < VERDICT_SIMULATE
			    ? gate_deny_guess(gate, AUDIT_NET_CONNECT, &action, decision, (pid_t)open->pid, &detail)
			    : gate_deny_paused(gate, AUDIT_NET_CONNECT, &action, (pid_t)open->pid, &detail);
		return r < 0 ? r : 0;
	}
	gate->run->refusals->allowed++;
	if (gate->run->network_policy->audit.network == AUDIT_OFF)
		return 1;
	r = gate_record(gate->run, AUDIT_NET_CONNECT, &action, &decision, (pid_t)open->pid, &detail);
	return r < 0 ? r : 1;
}

int gate_log_granted(struct net_gate *gate, const struct gate_open *open)
{
	return judge_open(gate, open, false);
}

int gate_log_open(struct net_gate *gate, const struct gate_open *open)
{
	return judge_open(gate, open, true);
}

int gate_log_answered(struct net_gate *gate, const struct gate_open *open, const struct queue_outcome *outcome)
{
	struct action action = connection_of(open);
	struct decision decision = decide(gate, &action);
	struct net_detail detail = { .port = open->port, .id = open->id };
	bool is_granted;
	int r;

	/* The policy may be another than when it was asked: it still must not deny. */
	if (decision.verdict == VERDICT_ASK)
		take_outcome(&decision, outcome);
	is_granted = decision.verdict >= VERDICT_SIMULATE;
	if (!is_granted)
		r = gate_deny_guess(gate, AUDIT_NET_CONNECT, &action, decision, (pid_t)open->pid, &detail);
	else
		r = gate_record(gate->run, AUDIT_NET_CONNECT, &action, &decision, (pid_t)open->pid, &detail);
	gate->run->refusals->allowed += is_granted;
	if (r < 0)
		return r;
	gate_answer(gate, open->id, is_granted);
	return 0;
}

/* Whether the name may lead to this address: of both policies, while one changes into the other, the stricter. */
static struct decision decide_resolved(const struct net_gate *gate, const struct action *action,
				       const uint8_t address[16])
{
	bool is_asked = decide(gate, action).verdict == VERDICT_ASK;
	struct decision decision = policy_decide_resolved(gate->run->network_policy, address, action->port, is_asked);

	if (decision.verdict != VERDICT_ALLOW || !gate->next_policy)
		return decision;
	return policy_decide_resolved(gate->next_policy, address, action->port, is_asked);
}

static int deny_resolved(struct net_gate *gate, const struct gate_resolved *resolved, struct decision decision)
{
	struct action action = connection_of(&resolved->open);
	struct net_detail detail = { .port = resolved->open.port, .id = resolved->open.id, .detail_key = "address",
				     .detail = resolved->address };

	return gate_deny_guess(gate, AUDIT_NET_CONNECT, &action, decision, (pid_t)resolved->open.pid, &detail);
}

/* The gate is connected: the port is the host's own server's, or one of ours. */
static int judge_own_port(struct net_gate *gate, const struct gate_resolved *resolved)
{
	static const struct decision ours = {
		VERDICT_DENY, { "builtin.own_port", "", 0 },
		"atoll itself listens on this port of the machine, for a sandbox",
		"sandboxes do not reach one another: use another port", NULL,
	};
	int r;

	if (!own_port_is_claimed((uint16_t)resolved->open.port))
		return 1;
	r = deny_resolved(gate, resolved, ours);
	return r < 0 ? r : 0;
}

static int ask_about_address(struct net_gate *gate, const struct gate_resolved *resolved,
			     struct decision decision)
{
	struct queue_outcome outcome;
	char reason[REASON_SIZE];
	int r;

	if (str_format(reason, sizeof reason, "%s leads to it, and %s", resolved->open.host, decision.reason) == 0)
		decision.reason = reason;
	r = gate_questions_resolved(gate, resolved, &decision, &outcome);
	if (r)
		return r < 0 ? r : GATE_LOG_WAITS;
	take_outcome(&decision, &outcome);
	if (decision.verdict == VERDICT_ALLOW)
		return 1;
	r = deny_resolved(gate, resolved, decision);
	return r < 0 ? r : 0;
}

static struct decision unless_reached(struct decision decision)
{
	const struct gate_refusal_text *text = &gate_refusal_texts[GATE_BY_ADDRESS];

	if (decision.verdict != VERDICT_DENY || !str_equal(decision.rule.id, "builtin.private"))
		return decision;
	return (struct decision){ VERDICT_DENY, text->rule, text->reason, text->hint, NULL };
}

int gate_log_resolved(struct net_gate *gate, const struct gate_resolved *resolved)
{
	struct action action = connection_of(&resolved->open);
	struct decision decision;
	uint8_t address[16];
	int r;

	if (!gate_address_parse(resolved->address, address))
		return -EBADMSG;
	if (address_host_is_loopback(resolved->open.host))
		return address_is_loopback(address) ? judge_own_port(gate, resolved) : -EBADMSG;
	decision = decide_resolved(gate, &action, address);
	if (decision.verdict == VERDICT_ALLOW)
		return address_is_loopback(address) ? judge_own_port(gate, resolved) : 1;
	if (decision.verdict == VERDICT_ASK && !gate_is_paused(gate))
		return ask_about_address(gate, resolved, decision);
	r = deny_resolved(gate, resolved, unless_reached(decision));
	return r < 0 ? r : 0;
}

int gate_log_resolved_answered(struct net_gate *gate, const struct gate_resolved *resolved,
			       const struct queue_outcome *outcome)
{
	struct action action = connection_of(&resolved->open);
	struct decision decision;
	uint8_t address[16];
	int r = 0;

	if (!gate_address_parse(resolved->address, address))
		return -EBADMSG;
	/* The policy may be another than when it was asked: it still must not deny. */
	decision = unless_reached(decide_resolved(gate, &action, address));
	if (decision.verdict == VERDICT_ASK)
		take_outcome(&decision, outcome);
	if (decision.verdict != VERDICT_ALLOW)
		r = deny_resolved(gate, resolved, decision);
	if (r >= 0)
		gate_answer(gate, resolved->open.id, decision.verdict == VERDICT_ALLOW);
	return r < 0 ? r : 0;
}

int gate_log_refused(struct net_gate *gate, const struct gate_refused *refused)
{
	const struct gate_refusal_text *text = &gate_refusal_texts[refused->refusal];
	struct action action = connection_of(&refused->open);
	struct decision decision = { VERDICT_DENY, text->rule, text->reason, text->hint };
	struct net_detail detail = {
		.port = refused->open.port, .id = refused->open.id, .detail = refused->detail,
		.detail_key = refused->refusal == GATE_BY_ADDRESS ? "address" : "server_name",
	};

	if (refused->refusal == GATE_BY_PAUSE)
		return gate_deny_paused(gate, AUDIT_NET_CONNECT, &action, (pid_t)refused->open.pid, &detail);
	if (refused->refusal == GATE_BY_LIMIT) {
		detail.detail = NULL;
		return gate_deny_limited(gate, AUDIT_NET_CONNECT, &action, (pid_t)refused->open.pid, &detail,
				    &(struct gate_limit){ .rule = refused->detail, .kind = refused->limit });
	}
	if (refused->refusal == GATE_BY_POLICY)
		decision = decide(gate, &action);
	if (refused->refusal == GATE_BY_POLICY && decision.verdict == VERDICT_ASK)
		return deny_unasked(gate, AUDIT_NET_CONNECT, &action, decision, (pid_t)refused->open.pid, &detail);
	return gate_deny_guess(gate, AUDIT_NET_CONNECT, &action, decision, (pid_t)refused->open.pid, &detail);
}

static void tally_add(struct gate_tally *tally, const char *text)
{
	if (!tally->count++ && str_copy(tally->first, sizeof tally->first, text) < 0)
		tally->first[0] = 0;
	tally->differ |= !str_equal(text, tally->first);
}

/*
 * The sandbox cannot tell: its connection stood before the host was looked for. A person who reads "connection reset"
 * is told at the end that nobody was there.
 */
static void note_unreached(struct net_gate *gate, const struct gate_closed *closed)
{
	static const char *const whys[] = { "the name cannot be resolved", "the host's proxy", "ECONNREFUSED",
					    "EHOSTUNREACH", "ENETUNREACH", "ETIMEDOUT" };
	struct buf text;
	char memory[sizeof gate->counts.unreached.first];
	size_t i = 0;

	while (closed->why && i < ARRAY_SIZE(whys) && strncmp(closed->why, whys[i], strlen(whys[i])) != 0)
		i++;
	if (closed->address || closed->in_bytes || !closed->why || i == ARRAY_SIZE(whys))
		return;
	buf_init_fixed(&text, memory, sizeof memory);
	buf_put_escaped(&text, closed->open.host, strlen(closed->open.host), 128);
	buf_printf(&text, ":%u: ", closed->open.port);
	buf_put_escaped(&text, closed->why, strlen(closed->why), 64);
	tally_add(&gate->counts.unreached, buf_text(&text));
}

/* A client that shows no answer's body leaves a person with a 502 of an unknown server; the text names it. */
static void note_untrusted(struct net_gate *gate, const char *problem)
{
	static const char no_tls[] = "no TLS with ";
	char memory[sizeof gate->counts.untrusted.first];
	struct buf text;

	if (!problem || strncmp(problem, no_tls, strlen(no_tls)) != 0)
		return;
	buf_init_fixed(&text, memory, sizeof memory);
	buf_put_escaped(&text, problem, strlen(problem), sizeof memory - CUT_SIZE);
	tally_add(&gate->counts.untrusted, buf_text(&text));
}

int gate_log_closed(struct net_gate *gate, const struct gate_closed *closed)
{
	struct action action = { .kind = ACTION_NET_CONNECT, .subject = closed->open.host };
	struct net_detail detail = { .port = closed->open.port, .id = closed->open.id, .closed = closed };
	int r = 0;

	note_unreached(gate, closed);
	if (gate->run->network_policy->audit.network != AUDIT_OFF)
		r = gate_record(gate->run, AUDIT_NET_CLOSE, &action, NULL, (pid_t)closed->open.pid, &detail);
	return r < 0 ? r : hub_publish(gate->run->hub, EVENT_CLOSED, &closed->out_bytes);
}

static struct action action_of(const struct gate_ask *ask)
{
	return (struct action){ .kind = ACTION_HTTP_REQUEST, .is_outward = true, .subject = ask->open.host,
				.port = (uint16_t)ask->open.port, .method = ask->method, .path = ask->path };
}

int gate_log_ask(struct net_gate *gate, const struct gate_ask *ask)
{
	struct action action = action_of(ask);
	struct decision decision = decide(gate, &action);

	/* The policy has changed on the way: the gate judges once more, as it does the next time. */
	if (decision.verdict == VERDICT_ASK)
		return gate_questions_request(gate, ask, &decision);
	decision.verdict = decision.verdict >= VERDICT_SIMULATE ? VERDICT_ALLOW : VERDICT_DENY;
	gate_answer_request(gate, ask->id, &decision);
	return 0;
}

void gate_log_judge_again(const struct net_gate *gate, const struct gate_ask *ask, struct decision *answer)
{
	struct action action = action_of(ask);
	struct decision decision = decide(gate, &action);

	if (decision.verdict != VERDICT_ASK && decision.verdict < VERDICT_SIMULATE)
		*answer = decision;
}

/* By what a policy says to each reading of the path, as the gate decides; reading gets the one that decided. */
static struct decision judge_request(const struct net_gate *gate, const struct target *target, struct action *reading)
{
	struct action next_reading = *reading;
	struct decision decision = target_judge(target, gate->run->network_policy, reading);

	if (decision.verdict != VERDICT_ALLOW || !gate->next_policy)
		return decision;
	decision = target_judge(target, gate->next_policy, &next_reading);
	*reading = next_reading;
	return decision;
}

/* decision: what the policy says; detail says of what. */
static int log_request(struct net_gate *gate, struct decision decision, const struct net_detail *detail)
{
	static const struct decision unrecorded = {
		VERDICT_DENY, { "builtin.replay", "", 0 }, "the recording has no answer to this request",
		"this run has no network (--replay); record it again with this request in it",
	};
	/* Who sends a canary does not hear what it was. */
	static const struct decision refused = {
		VERDICT_DENY, { "builtin.request", "", 0 }, "the request is not allowed", "",
	};
	static const struct decision leaks[] = {
		{ VERDICT_DENY, { "builtin.secrets", "", 0 }, "the request carries a secret out",
		  "leave it out; the network gate puts secrets in where the policy says so" },
		{ VERDICT_DENY, { "builtin.secrets", "", 0 },
		  "what stands for a secret was sent to another host than the secret's own",
		  "send it only to the hosts that the policy gives the secret to" },
	};
	const struct gate_request *request = detail->request;
	const struct gate_open *open = &request->open;
	struct action action = { .kind = ACTION_HTTP_REQUEST, .subject = open->host, .port = (uint16_t)open->port,
				 .is_outward = true,
				 .method = request->method, .path = request->path };
	struct gate_answered answered;

	/* Counted when it was let out, once; what it was let out by stands in the record. */
	if (request->asked && gate_questions_take(gate, request->asked, &answered) && decision.verdict == VERDICT_ASK)
		decision = (struct decision){ answered.verdict, { answered.rule, "", 0 }, answered.reason,
					      answered.hint, NULL };
	if (request->leak.secret && request->leak.is_refused)
		decision = strv_has(gate->run->policy->policy->data.canary_files, request->leak.secret)
				   ? refused : leaks[request->leak.is_placeholder];
	if (gate->run->request->recording.mode == RECORDING_REPLAY && request->replay == GATE_NOT_RECORDED &&
	    decision.verdict == VERDICT_ALLOW)
		decision = unrecorded;
	gate->counts.simulated += decision.verdict == VERDICT_SIMULATE;
	note_untrusted(gate, request->problem);
	if (decision.verdict < VERDICT_SIMULATE)
		return gate_deny_guess(gate, AUDIT_NET_HTTP, &action, decision, (pid_t)open->pid, detail);
	if (request->is_limited)
		return gate_deny_limited(gate, AUDIT_NET_HTTP, &action, (pid_t)open->pid, detail,
				    &(struct gate_limit){ .rule = request->limit_rule, .kind = NET_LIMIT_REQUESTS });
	gate->run->refusals->allowed++;
	if (gate->run->network_policy->audit.network == AUDIT_OFF)
		return 0;
	return gate_record(gate->run, AUDIT_NET_HTTP, &action, &decision, (pid_t)open->pid, detail);
}

int gate_log_request(struct net_gate *gate, const struct gate_request *request)
{
	static const struct decision unread = {
		VERDICT_DENY, { "builtin.http", "", 0 },
		"the request is malformed, or names another host",
		"use an ordinary client; the answer to the request says what was wrong",
	};
	struct action reading = { .kind = ACTION_HTTP_REQUEST, .is_outward = true, .subject = request->open.host,
				  .port = (uint16_t)request->open.port, .method = request->method };
	struct net_detail detail = { .port = request->open.port, .id = request->open.id, .request = request };
	struct target target = { .origin = NULL };
	int r = *request->path ? target_read(request->path, request->climbs, &target) : -EBADMSG;

	if (r == 0)
		detail.reading = &reading;
	if (r == 0 || r == -EBADMSG)
		r = log_request(gate, r == 0 ? judge_request(gate, &target, &reading) : unread, &detail);
	target_done(&target);
	return r < 0 || !request->leak.secret ? r : hub_publish(gate->run->hub, EVENT_LEAK, request);
}

static int judge_address(struct net_gate *gate, const struct watch_network *event)
{
	struct action action = { .kind = ACTION_NET_CONNECT, .subject = event->address, .port = event->port,
				 .is_outward = true };
	struct decision decision = decide(gate, &action);
	struct net_detail detail = { .port = event->port };
	int r;

	/* What is asked about is asked at the gate, where it can wait. */
	if (decision.verdict == VERDICT_ALLOW || (decision.verdict == VERDICT_ASK && gate_questions_is_on(gate)))
		return 0;
	if (decision.verdict == VERDICT_ASK)
		r = deny_unasked(gate, AUDIT_NET_CONNECT, &action, decision, event->pid, &detail);
	else
		r = gate_deny_guess(gate, AUDIT_NET_CONNECT, &action, decision, event->pid, &detail);
	return r < 0 ? r : ENETUNREACH;
}

int gate_log_address(struct net_gate *gate, const struct watch_network *event)
{
	int errnum = judge_address(gate, event), r = errnum;

	if (r >= 0)
		r = hub_publish(gate->run->hub, EVENT_ADDRESS, event->address);
	return r < 0 ? r : errnum;
}

int gate_log_failure(struct net_gate *gate)
{
	static const char subject[] = "network gate";
	struct net_detail detail = { .detail_key = "failure", .detail = gate->failure };
	struct audit_event event = {
		.type = AUDIT_ALERT, .subject = subject, .subject_size = strlen(subject),
			.write_detail = net_detail_to_json,
		.context = &detail,
	};

	return audit_write(gate->run->audit, &event);
}
