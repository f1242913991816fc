/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/compare/network.h"

#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "policy/compare/parts.h"
#include "policy/limit-text.h"
#include "policy/order.h"
#include "policy/publish.h"

/*
 * Both are asked wherever either of them says something: every host that a rule of one names, with every port that
 * stands beside it in either. Between two named hosts decisions do not change, so this finds every difference.
 */

enum { SUBJECT_SIZE = 320, PORT_WORDS = (UINT16_MAX + 1) / 64 };

struct comparison {
	const struct policy *a, *b;
	void (*tell)(void *context, const struct net_difference *difference);
	void *context;
};

/* The rules of both policies about one host or block of addresses, and the ports that they name. */
struct place {
	const char *name;
	uint64_t ports[PORT_WORDS];
};

static void compare_action(const struct comparison *comparison, const struct action *action, const char *shown)
{
	enum verdict from = policy_decide(comparison->a, action).verdict,
		     to = policy_decide(comparison->b, action).verdict;

	if (from != to)
		comparison->tell(comparison->context,
				 &(struct net_difference){ action_kind_names[action->kind], shown, verdict_names[from],
							   verdict_names[to], to > from });
}

/* A host or address that the place covers. */
static int sample(const char *name, char out[SUBJECT_SIZE])
{
	if (name[0] == '*')
		return str_format(out, SUBJECT_SIZE, "x%s", name + 1);
	return str_format(out, SUBJECT_SIZE, "%.*s", (int)strcspn(name, "/"), name);
}

static void compare_place(const struct comparison *comparison, const struct place *place)
{
	char subject[SUBJECT_SIZE], shown[SUBJECT_SIZE];

	if (sample(place->name, subject) < 0)
		return;
	for (unsigned port = 1; port <= UINT16_MAX; port++) {
		struct action action = { .kind = ACTION_NET_CONNECT, .subject = subject, .port = (uint16_t)port };

		if (!place->ports[port / 64])
			port |= 63;
		else if (place->ports[port / 64] >> port % 64 & 1 &&
			 str_format(shown, sizeof shown, "%s%s%s:%u", str_host_open(place->name), place->name,
				    str_host_close(place->name), port) == 0)
			compare_action(comparison, &action, shown);
	}
}

static void add_rule(struct place *place, const struct policy *policy, const struct net_rule *rule)
{
	static const uint16_t usual[] = { 443, 80, 22 };
	const uint16_t *ports = rule->port_count ? rule->ports : usual;
	size_t count = rule->port_count ? rule->port_count : ARRAY_SIZE(usual);

	for (size_t i = 0; i < count; i++)
		place->ports[ports[i] / 64] |= UINT64_C(1) << ports[i] % 64;
	/* What lists requests closes the ports that were open by default. */
	for (size_t i = 0;
	     policy->network.default_verdict == VERDICT_ALLOW && rule->http_count && i < ARRAY_SIZE(usual); i++)
		place->ports[usual[i] / 64] |= UINT64_C(1) << usual[i] % 64;
}

/* Adds the rules from *at on that name the place; they stand together. */
static void add_group(struct place *place, const struct policy *policy, size_t *at)
{
	for (; *at < policy->network.exact_count; ++*at) {
		if (!str_equal(policy->network.rules[*at].host, place->name))
			return;
		add_rule(place, policy, &policy->network.rules[*at]);
	}
}

/* Which of two rules comes next; both lists are sorted, and either may be at its end. */
static const char *next_host(const struct policy *a, size_t i, const struct policy *b, size_t j)
{
	const char *x = i < a->network.exact_count ? a->network.rules[i].host : NULL,
		   *y = j < b->network.exact_count ? b->network.rules[j].host : NULL;

	if (!x || !y)
		return x ? x : y;
	return net_host_compare(x, y) <= 0 ? x : y;
}

static void compare_hosts(const struct comparison *comparison)
{
	size_t i = 0, j = 0;
	const char *host;

	while ((host = next_host(comparison->a, i, comparison->b, j))) {
		struct place place = { .name = host };

		add_group(&place, comparison->a, &i);
		add_group(&place, comparison->b, &j);
		compare_place(comparison, &place);
	}
}

static bool has_block(const struct policy *policy, size_t end, const char *cidr)
{
	for (size_t i = policy->network.exact_count; i < end; i++)
		if (str_equal(policy->network.rules[i].cidr, cidr))
			return true;
	return false;
}

static void add_blocks(struct place *place, const struct policy *policy)
{
	for (size_t i = policy->network.exact_count; i < policy->network.count; i++)
		if (str_equal(policy->network.rules[i].cidr, place->name))
			add_rule(place, policy, &policy->network.rules[i]);
}

/* Blocks of addresses are few (DRAFT_GLOBS_MAX), and in no order. */
static void compare_blocks(const struct comparison *comparison)
{
	const struct policy *both[] = { comparison->a, comparison->b };

	for (size_t p = 0; p < ARRAY_SIZE(both); p++)
		for (size_t i = both[p]->network.exact_count; i < both[p]->network.count; i++) {
			struct place place = { .name = both[p]->network.rules[i].cidr };

			if (has_block(both[p], i, place.name) ||
			    (p && has_block(both[0], both[0]->network.count, place.name)))
				continue;
			add_blocks(&place, comparison->a);
			add_blocks(&place, comparison->b);
			compare_place(comparison, &place);
		}
}

/* ---- what is counted ---- */

static int compare_fractions(const struct net_amount *a, const struct net_amount *b)
{
	unsigned __int128 x = (unsigned __int128)a->amount * (b->period_ms ? b->period_ms : 1),
			  y = (unsigned __int128)b->amount * (a->period_ms ? a->period_ms : 1);

	/* 0 is no limit, which is the most. */
	if (!a->amount || !b->amount)
		return !a->amount - !b->amount;
	return x < y ? -1 : x > y;
}

/* What is not said of a wildcard's names is a limit, and what has none says so. */
static struct net_amount effective(const char *host, size_t kind, const struct net_amount *amount)
{
	if (kind != NET_LIMIT_LABELS || !host || host[0] != '*')
		return *amount;
	if (amount->amount == UINT64_MAX)
		return (struct net_amount){ 0 };
	return (struct net_amount){ amount->amount ? amount->amount : NET_LABELS_DEFAULT, 0 };
}

/* Of the session, or of the rules about one host; a set that is not there limits nothing but names. */
static void compare_limits(const struct comparison *comparison, const char *host, const struct net_limits *from,
			   const struct net_limits *to)
{
	static const struct net_limits none;
	char from_text[NET_LIMIT_TEXT_SIZE], to_text[NET_LIMIT_TEXT_SIZE], subject[SUBJECT_SIZE];

	from = from ? from : &none;
	to = to ? to : &none;
	for (size_t i = 0; i < NET_LIMIT_COUNT; i++) {
		struct net_amount before = effective(host, i, &from->of[i]), after = effective(host, i, &to->of[i]);
		int r = compare_fractions(&before, &after);

		if (!r || str_format(subject, sizeof subject, "%s%s%s", host ? host : "", host ? " " : "",
				     net_limit_names[i]) < 0)
			continue;
		net_limit_to_text((enum net_limit)i, &before, from_text);
		net_limit_to_text((enum net_limit)i, &after, to_text);
		comparison->tell(comparison->context, &(struct net_difference){ "network.limits", subject, from_text,
										to_text, r < 0 });
	}
}

static const char *name_of(const struct net_rule *rule)
{
	return rule->host ? rule->host : rule->cidr;
}

/* The limits of the rule that says the same of the same host and ports. */
static const struct net_limits *find_limits(const struct policy *policy, const struct net_rule *like)
{
	for (size_t i = 0; i < policy->network.limited_count; i++) {
		const struct net_rule *rule = &policy->network.rules[policy->network.limited[i]];

		if (str_equal(name_of(rule), name_of(like)) && rule->port_count == like->port_count &&
		    (!rule->port_count ||
		     memcmp(rule->ports, like->ports, rule->port_count * sizeof *rule->ports) == 0))
			return rule->limits;
	}
	return NULL;
}

static void compare_rule_limits(const struct comparison *comparison)
{
	const struct policy *a = comparison->a, *b = comparison->b;

	for (size_t i = 0; i < a->network.limited_count; i++) {
		const struct net_rule *rule = &a->network.rules[a->network.limited[i]];

		compare_limits(comparison, name_of(rule), rule->limits, find_limits(b, rule));
	}
	for (size_t i = 0; i < b->network.limited_count; i++) {
		const struct net_rule *rule = &b->network.rules[b->network.limited[i]];

		if (!find_limits(a, rule))
			compare_limits(comparison, name_of(rule), NULL, rule->limits);
	}
}

static void compare_cooldown(const struct comparison *comparison)
{
	const struct cooldown_rule *a = &comparison->a->network.cooldown, *b = &comparison->b->network.cooldown;
	char from[COOLDOWN_TEXT_SIZE], to[COOLDOWN_TEXT_SIZE];

	if (cooldown_rules_equal(a, b))
		return;
	cooldown_to_text(a, from);
	cooldown_to_text(b, to);
	comparison->tell(comparison->context, &(struct net_difference){ "network.limits", "cooldown", from, to,
									cooldown_rule_is_wider(a, b) });
}

static bool publishes(const struct policy *policy, const struct publish_rule *like)
{
	for (size_t i = 0; i < policy->network.publish_count; i++)
		if (policy->network.publish[i].port == like->port &&
		    policy->network.publish[i].host_port == like->host_port &&
		    policy->network.publish[i].is_inet6 == like->is_inet6)
			return true;
	return false;
}

static void compare_publish(const struct comparison *comparison, const struct policy *has, const struct policy *other)
{
	char host[PUBLISH_TEXT_SIZE], subject[SUBJECT_SIZE];
	bool allows = has == comparison->b;

	for (size_t i = 0; i < has->network.publish_count; i++) {
		if (publishes(other, &has->network.publish[i]))
			continue;
		publish_host_format(&has->network.publish[i], host);
		if (str_format(subject, sizeof subject, "%s to port %u", host, has->network.publish[i].port) == 0)
			comparison->tell(comparison->context,
					 &(struct net_difference){ "network.publish", subject,
								   allows ? "closed" : "open",
								   allows ? "open" : "closed", allows });
	}
}

static void compare_host_ports(const struct comparison *comparison, const struct policy *has,
			       const struct policy *other)
{
	char subject[SUBJECT_SIZE];
	bool allows = has == comparison->b;

	for (size_t i = 0; i < has->network.host_port_count; i++) {
		uint16_t port = has->network.host_ports[i].port;

		if (policy_host_port(other, port) ||
		    str_format(subject, sizeof subject, "localhost:%u of this machine", port) < 0)
			continue;
		comparison->tell(comparison->context,
				 &(struct net_difference){ "network.host_ports", subject, allows ? "closed" : "open",
							   allows ? "open" : "closed", allows });
	}
}

void policy_compare_network(const struct policy *a, const struct policy *b,
			    void (*tell)(void *context, const struct net_difference *difference), void *context)
{
	struct comparison comparison = { a, b, tell, context };
	struct action unlisted = { .kind = ACTION_NET_CONNECT, .subject = "host.invalid", .port = 443 };

	compare_action(&comparison, &unlisted, "hosts that no rule lists");
	if ((a->network.mode == NETWORK_HOST) != (b->network.mode == NETWORK_HOST))
		tell(context, &(struct net_difference){ "network.host", "the host's own network, its loopback included",
							a->network.mode == NETWORK_HOST ? "shared" : "separate",
							b->network.mode == NETWORK_HOST ? "shared" : "separate",
							b->network.mode == NETWORK_HOST });
	compare_hosts(&comparison);
	compare_blocks(&comparison);
	compare_limits(&comparison, NULL, &a->network.limits, &b->network.limits);
	compare_rule_limits(&comparison);
	compare_cooldown(&comparison);
	compare_publish(&comparison, a, b);
	compare_publish(&comparison, b, a);
	compare_host_ports(&comparison, a, b);
	compare_host_ports(&comparison, b, a);
}
