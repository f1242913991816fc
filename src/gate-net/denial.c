/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-net/denial.h"

#include "base/num.h"
#include "base/str.h"
#include "gate-net/gate.h"
#include "gate-net/link.h"
#include "os/clock.h"
#include "policy/limit-text.h"
#include "supervise/refusals.h"
#include "supervise/run.h"

const struct gate_refusal_text gate_refusal_texts[GATE_REFUSAL_COUNT] = {
	[GATE_BY_POLICY] = { { "network.default", "", 0 }, "no rule allows this host and port",
			     "list the host under network.allow of your policy" },
	[GATE_BY_SERVER_NAME] = { { "builtin.server_name", "", 0 },
				  "the TLS client asks for another server than the one it looked up",
				  "connect to the host by its own name" },
	[GATE_WITHOUT_NAME] = { { "builtin.server_name", "", 0 }, "the TLS client names no server that can be checked",
				"use a client that sends the server's name (SNI) openly" },
	[GATE_WITHOUT_TLS] = { { "builtin.tls", "", 0 }, "only TLS may be spoken on this port",
			       "use https, or another port that the policy lists" },
	[GATE_BY_ADDRESS] = { { "builtin.private", "", 0 },
			      "the name leads to an address that is not of the public internet",
			      "list that address as a cidr under network.allow of your policy" },
	[GATE_BY_LOOKUP] = { { "builtin.lookup", "", 0 }, "no name was looked up for this address",
			     "connect to the host by its name" },
};

/* By enum net_limit; the last one is what the gate itself can take. */
static const struct gate_refusal_text limit_texts[NET_LIMIT_COUNT + 1] = {
	[NET_LIMIT_TOTAL] = { .reason = "the limit of network bytes is used up",
			      .hint = "this run gets no more" },
	[NET_LIMIT_IN] = { .reason = "the limit of incoming bytes is used up",
			   .hint = "this run gets no more" },
	[NET_LIMIT_OUT] = { .reason = "the limit of outgoing bytes is used up",
			    .hint = "this run gets no more" },
	[NET_LIMIT_REQUESTS] = { .reason = "there are too many requests for the limits of the policy",
				 .hint = "wait for as long as the answer says, and send fewer at one time" },
	[NET_LIMIT_NEW_CONNECTIONS] = { .reason = "too many connections were begun in this time",
					.hint = "wait, and use a connection for more than one request" },
	[NET_LIMIT_CONNECTIONS] = { .reason = "there are too many connections at one time",
				    .hint = "close some, or use fewer at one time" },
	[NET_LIMIT_HOSTS] = { .reason = "no further host can be connected to",
			      .hint = "those that were connected to before can still be reached" },
	[NET_LIMIT_LABELS] = { .reason = "the names under this wildcard are used up: more could carry data out",
			       .hint = "have hosts that are needed listed by their full names, or `limits: {labels: "
				       "…}` of the rule raised; those connected to before still can be" },
	[NET_LIMIT_COUNT] = { .reason = "there are more connections than the gate can take",
			      .hint = "close some, or use fewer at one time" },
};

static const char pause_rule[] = "network.limits.cooldown";

enum { REASON_SIZE = 128, PAIR_NS = 50000000 };

/* What nobody can be asked about is refused; the record says what came of it. */
static int deny(struct net_gate *gate, enum audit_type type, const struct action *action, struct decision decision,
		pid_t pid, const struct net_detail *detail)
{
	uint32_t episode = 0;
	int r;

	if (decision.rule.id == pause_rule)
		episode = gate->cooldown.episodes;
	else if (decision.rule.id == rate_cooldown_rule)
		episode = gate->run->refusals->rates.cooldown.episodes;

	decision.verdict = VERDICT_DENY;
	gate->run->refusals->denied++;
	r = gate_record(gate->run, type, action, &decision, pid, detail);
	return r < 0 ? r : denials_add(&gate->run->refusals->denials, action, &decision, episode);
}

/* Programs look up two types of a name at once, and guess once. */
static bool is_second_type(struct net_gate *gate, const struct action *action, uint64_t now_ns)
{
	bool is_same = action->kind == ACTION_NET_DNS && str_equal(gate->last_refused.name, action->subject) &&
		       now_ns - gate->last_refused.ns < PAIR_NS;

	gate->last_refused.ns = now_ns;
	if (action->kind != ACTION_NET_DNS ||
	    str_copy(gate->last_refused.name, sizeof gate->last_refused.name, action->subject) < 0)
		gate->last_refused.name[0] = 0;
	return is_same;
}

/* As deny(), for what the policy does not allow: many of these are a burst of guesses. */
int gate_deny_guess(struct net_gate *gate, enum audit_type type, const struct action *action, struct decision decision,
		    pid_t pid, const struct net_detail *detail)
{
	const struct cooldown_rule *rule = &gate->run->network_policy->network.cooldown;
	uint64_t now_ns = clock_monotonic_ns();
	int r = deny(gate, type, action, decision, pid, detail);

	if (r < 0 || is_second_type(gate, action, now_ns))
		return r;
	r = rate_refused(gate->run);
	if (r < 0 || !cooldown_count(&gate->cooldown, rule, now_ns))
		return r;
	r = run_limit_episode(gate->run, pause_rule, rule->denials);
	gate_pause(gate);
	return r;
}

int gate_deny_paused(struct net_gate *gate, enum audit_type type, const struct action *action, pid_t pid,
		     const struct net_detail *detail)
{
	uint64_t left_ms = gate_pause_left_ms(gate);
	char reason[REASON_SIZE], left[32];
	const char *rule = left_ms && left_ms == rate_pause_left_ms(gate->run) ? rate_cooldown_rule : pause_rule;
	struct decision decision = { VERDICT_DENY, { rule, "", 0 }, reason,
				     "wait until it is over, and use hosts that /run/atoll/limits.md lists" };

	/* Whole seconds, and none too few. */
	num_format_duration((left_ms + 999) / 1000 * 1000, left);
	if (str_format(reason, sizeof reason, "too much was refused: nothing new is let out for another %s",
		       left_ms ? left : "moment") < 0)
		reason[0] = 0;
	return deny(gate, type, action, decision, pid, detail);
}

bool gate_is_paused(const struct net_gate *gate)
{
	return gate_pause_left_ms(gate) > 0;
}

/* rule is what the gate says, and believed if there is one. */
static void name_limit(const struct net_gate *gate, const char *rule, uint32_t kind, char out[NET_LIMIT_KEY_SIZE])
{
	const struct policy *policy = gate->run->network_policy;
	const char *known = NULL;

	/* Also those without limits of their own: labels have one all the same. */
	for (size_t i = 0; rule && i < policy->network.count; i++)
		known = str_equal(policy->network.rules[i].origin.id, rule) ? policy->network.rules[i].origin.id
									    : known;
	net_limit_key(known, kind, out);
}

int gate_log_limit(struct net_gate *gate, const struct gate_limit *limit)
{
	char name[NET_LIMIT_KEY_SIZE];

	name_limit(gate, limit->rule, limit->kind, name);
	return run_limit_episode(gate->run, name, limit->amount);
}

int gate_deny_limited(struct net_gate *gate, enum audit_type type, const struct action *action, pid_t pid,
		      const struct net_detail *detail, const struct gate_limit *limit)
{
	const struct gate_refusal_text *text =
		&limit_texts[limit->kind < NET_LIMIT_COUNT ? limit->kind : NET_LIMIT_COUNT];
	char name[NET_LIMIT_KEY_SIZE];
	struct decision decision = { VERDICT_DENY, { name, "", 0 }, text->reason ? text->reason : "",
				     text->hint ? text->hint : "" };

	name_limit(gate, limit->rule, limit->kind, name);
	return deny(gate, type, action, decision, pid, detail);
}
