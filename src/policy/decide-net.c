/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/decide-net.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/address-block.h"
#include "base/num.h"
#include "base/str.h"
#include "policy/glob.h"
#include "policy/order.h"
#include "policy/request-path.h"

enum { HOST_SIZE = 254 };

/* An address as 16 bytes (IPv4 as ::ffff:a.b.c.d), and the IPv4 address that it hides, if any. */
struct address {
	uint8_t bytes[16];
	uint8_t hidden[16];
	bool has_hidden;
};

struct subject {
	char host[HOST_SIZE];
	bool is_address;
	struct address address;
};

static const char ask_hint[] =
	"`atoll ask` lists what waits for a person; to allow it for good, list it under network.allow of your policy";
static const uint8_t mapped_prefix[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };
static const uint8_t nat64_prefix[12] = { 0, 0x64, 0xff, 0x9b };

static void set_mapped(uint8_t out[16], const uint8_t v4[4])
{
	memcpy(out, mapped_prefix, sizeof mapped_prefix);
	memcpy(out + 12, v4, 4);
}

static bool parse_address(const char *text, uint8_t out[16])
{
	uint8_t v4[4];

	if (inet_pton(AF_INET, text, v4) == 1) {
		set_mapped(out, v4);
		return true;
	}
	return inet_pton(AF_INET6, text, out) == 1;
}

/* NAT64 (RFC 6052), 6to4 and IPv4-compatible forms lead to an IPv4 host: what denies that host denies them.
 */
static void find_hidden(struct address *address)
{
	const uint8_t *b = address->bytes, *v4 = NULL;
	static const uint8_t zero[12];

	if (memcmp(b, nat64_prefix, 12) == 0 || memcmp(b, zero, 12) == 0)
		v4 = b + 12;
	else if (b[0] == 0x20 && b[1] == 0x02)
		v4 = b + 2;
	address->has_hidden = v4 != NULL;
	if (v4)
		set_mapped(address->hidden, v4);
}

static bool parse_cidr(const char *text, uint8_t out[16], unsigned *ret_bits)
{
	const char *slash = strchr(text, '/');
	char address[64];
	uint64_t bits;

	if (!slash || (size_t)(slash - text) >= sizeof address)
		return false;
	memcpy(address, text, (size_t)(slash - text));
	address[slash - text] = 0;
	if (num_parse_u64(slash + 1, &bits) < 0 || !parse_address(address, out))
		return false;
	if (!strchr(address, ':'))
		bits = bits > 32 ? 129 : bits + 96;
	*ret_bits = (unsigned)bits;
	return bits <= 128;
}

bool net_cidr_is_valid(const char *text)
{
	uint8_t bytes[16], masked[16] = { 0 };
	unsigned bits;

	if (!parse_cidr(text, bytes, &bits))
		return false;
	for (unsigned i = 0; i < bits; i++)
		masked[i / 8] |= bytes[i / 8] & (uint8_t)(0x80 >> i % 8);
	return memcmp(bytes, masked, 16) == 0;
}

bool net_cidr_is_public(const char *text)
{
	uint8_t bytes[16];
	unsigned bits;

	return parse_cidr(text, bytes, &bits) && address_block_is_public(bytes, bits);
}

static bool label_is_valid(const char *label, size_t length)
{
	if (length == 0 || length > 63 || label[0] == '-' || label[length - 1] == '-')
		return false;
	for (size_t i = 0; i < length; i++) {
		char c = label[i];

		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_'))
			return false;
	}
	return true;
}

/* A last label of digits (or 0x…) is an address in a spelling that resolvers accept and rules do not see. */
static bool name_is_valid(const char *text)
{
	const char *last = text;

	if (!*text || strlen(text) >= HOST_SIZE)
		return false;
	for (;;) {
		size_t length = strcspn(text, ".");

		if (!label_is_valid(text, length))
			return false;
		last = text;
		if (!text[length])
			break;
		text += length + 1;
	}
	return !(last[0] >= '0' && last[0] <= '9' &&
		 (last[strspn(last, "0123456789")] == 0 || (last[0] == '0' && last[1] == 'x')));
}

bool net_host_is_valid(const char *text)
{
	return name_is_valid(str_has_prefix(text, "*.") ? text + 2 : text);
}

static bool parse_subject(const char *text, struct subject *ret_subject)
{
	size_t i;

	ret_subject->is_address = parse_address(text, ret_subject->address.bytes);
	if (ret_subject->is_address) {
		find_hidden(&ret_subject->address);
		ret_subject->host[0] = 0;
		return true;
	}
	for (i = 0; text[i] && i + 1 < HOST_SIZE; i++)
		ret_subject->host[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] | 0x20) : text[i];
	ret_subject->host[i] = 0;
	return !text[i] && name_is_valid(ret_subject->host);
}

static bool host_matches(const char *pattern, const char *host)
{
	if (str_has_prefix(pattern, "*."))
		return str_has_suffix(host, pattern + 1) && strlen(host) > strlen(pattern) - 1;
	return str_equal(pattern, host);
}

static bool is_excepted(const struct net_rule *rule, const struct subject *subject)
{
	for (const char *const *except = rule->except; except && *except; except++)
		if (!subject->is_address && host_matches(*except, subject->host))
			return true;
	return false;
}

static bool port_matches(const struct net_rule *rule, const struct action *action)
{
	if (!rule->port_count)
		return true;
	/* A name may be asked for when any of its ports may be used: what is refused is told at the connection. */
	if (action->kind == ACTION_NET_DNS)
		return rule->verdict >= VERDICT_SIMULATE;
	for (size_t i = 0; i < rule->port_count; i++)
		if (rule->ports[i] == action->port)
			return true;
	return false;
}

static bool http_matches(const struct http_rule *rule, const struct action *action, bool is_refusing)
{
	bool method = !rule->methods || !rule->methods[0], path = !rule->paths || !rule->paths[0];

	for (const char *const *m = rule->methods; !method && m && *m; m++)
		method = action->method && str_equal(*m, action->method);
	for (const char *const *p = rule->paths; method && !path && p && *p; p++)
		path = request_path_matches(action, *p, is_refusing);
	return method && path;
}

/*
 * A connection is opened for what some request may do; what refuses some requests is asked about each of them, by the
 * gate that reads them (policy_intercepts).
 */
static bool request_matches(const struct net_rule *rule, const struct action *action)
{
	if (action->kind != ACTION_HTTP_REQUEST || !rule->http_count)
		return !rule->http_count || rule->verdict >= VERDICT_SIMULATE;
	for (size_t i = 0; i < rule->http_count; i++)
		if (http_matches(&rule->http[i], action, rule->verdict != VERDICT_ALLOW))
			return true;
	return false;
}

static bool cidr_matches(const struct net_rule *rule, const struct subject *subject)
{
	uint8_t bytes[16];
	unsigned bits;

	if (!subject->is_address || !parse_cidr(rule->cidr, bytes, &bits))
		return false;
	if (address_prefix_equal(bytes, subject->address.bytes, bits))
		return true;
	return rule->verdict < VERDICT_SIMULATE && subject->address.has_hidden &&
	       address_prefix_equal(bytes, subject->address.hidden, bits);
}

/* It answers some requests only, so a connection may be needed for the others: any rule about the host itself wins. */
static bool is_partial(const struct net_rule *rule, const struct action *action)
{
	return rule->verdict == VERDICT_SIMULATE && rule->http_count && action->kind != ACTION_HTTP_REQUEST;
}

static int rank(const struct net_rule *rule, const struct action *action)
{
	return is_partial(rule, action) ? VERDICT_COUNT : (int)rule->verdict;
}

static bool is_about_host(const struct net_rule *rule, const struct subject *subject)
{
	bool matches = rule->cidr ? cidr_matches(rule, subject)
				  : !subject->is_address && host_matches(rule->host, subject->host);

	return matches && !is_excepted(rule, subject);
}

/* Whether it is about this host and port, whatever it says of requests. */
static bool leads_there(const struct net_rule *rule, const struct subject *subject, const struct action *action)
{
	return port_matches(rule, action) && is_about_host(rule, subject);
}

static bool rule_covers(const struct net_rule *rule, const struct subject *subject, const struct action *action)
{
	return leads_there(rule, subject, action) && request_matches(rule, action);
}

/* The strictest rule that matches so far, and whether any of them, strict or not, is about requests. */
struct search {
	const struct subject *subject;
	const struct action *action;
	const struct net_rule *best;
	const struct net_rule *listing;  /* allows some requests of this host, on this port or another: no others */
	bool is_about_requests;
};

static bool is_about_requests(const struct net_rule *rule)
{
	return rule->http_count || rule->inject.kind != INJECT_NONE || rule->verdict == VERDICT_SIMULATE;
}

static void consider(struct search *search, const struct net_rule *rule)
{
	const struct action *action = search->action;
	bool is_stricter = !search->best || rank(rule, action) < rank(search->best, action);

	if ((!is_stricter && !is_about_requests(rule)) || !is_about_host(rule, search->subject))
		return;
	if (rule->verdict == VERDICT_ALLOW && rule->http_count)
		search->listing = rule;
	if (!port_matches(rule, action))
		return;
	search->is_about_requests = search->is_about_requests || is_about_requests(rule);
	if (is_stricter && request_matches(rule, action))
		search->best = rule;
}

/* The first of the exact host rules whose key (the host, or what follows its "*") is not before key. */
static size_t first_of_host(const struct policy *policy, const char *key)
{
	size_t low = 0, high = policy->network.exact_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (net_host_compare(policy->network.rules[middle].host, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool has_key(const struct policy *policy, size_t at, const char *key)
{
	return at < policy->network.exact_count && net_host_compare(policy->network.rules[at].host, key) == 0;
}

static void consider_host(const struct policy *policy, const char *key, struct search *search)
{
	for (size_t at = first_of_host(policy, key); has_key(policy, at, key); at++)
		consider(search, &policy->network.rules[at]);
}

static struct search find_rule(const struct policy *policy, const struct subject *subject, const struct action *action)
{
	struct search search = { .subject = subject, .action = action };

	if (!subject->is_address) {
		consider_host(policy, subject->host, &search);
		for (const char *dot = strchr(subject->host, '.'); dot; dot = strchr(dot + 1, '.'))
			consider_host(policy, dot, &search);
	}
	for (size_t i = policy->network.exact_count; i < policy->network.count; i++)
		consider(&search, &policy->network.rules[i]);
	return search;
}

/* Whether what no rule matches is refused because of what a rule lists, though the network is open by default. */
static bool is_closed_by(const struct search *search, const struct policy *policy)
{
	enum action_kind kind = search->action->kind;

	return search->listing && policy->network.default_verdict == VERDICT_ALLOW &&
	       (kind == ACTION_HTTP_REQUEST || kind == ACTION_NET_CONNECT);
}

bool policy_intercepts(const struct policy *policy, const char *host, uint16_t port)
{
	struct action action = { .kind = ACTION_NET_CONNECT, .subject = host, .port = port };
	struct subject subject;

	return parse_subject(host, &subject) && find_rule(policy, &subject, &action).is_about_requests;
}

bool policy_judges_requests(const struct policy *policy, const char *host, uint16_t port)
{
	struct action action = { .kind = ACTION_NET_CONNECT, .subject = host, .port = port };
	struct subject subject;

	if (!parse_subject(host, &subject))
		return false;
	for (size_t i = 0; i < policy->network.count; i++)
		if (policy->network.rules[i].http_count && leads_there(&policy->network.rules[i], &subject, &action))
			return true;
	return false;
}

bool policy_intercepts_any(const struct policy *policy)
{
	for (size_t i = 0; policy->network.mode == NETWORK_GATE && i < policy->network.count; i++)
		if (is_about_requests(&policy->network.rules[i]))
			return true;
	return false;
}

static bool is_loopback(const struct subject *subject)
{
	return subject->is_address ? address_is_loopback(subject->address.bytes)
				   : str_equal(subject->host, "localhost");
}

static const char private_rule[] = "builtin.private";

static struct decision ask_private(void)
{
	return (struct decision){ VERDICT_ASK,
				  { private_rule, "", 0 },
				  "this is a private address: a machine of your own network, company or VPN",
				  ask_hint };
}

static struct decision deny_special(void)
{
	return (struct decision){ VERDICT_DENY,
				  { private_rule, "", 0 },
				  "this is no address of the public internet",
				  "list it as a cidr under network.allow of your policy" };
}

/* The host can be looked up: some rule allows it on another port than was asked about. */
static bool is_listed(const struct policy *policy, const struct subject *subject)
{
	const struct action look_up = { .kind = ACTION_NET_DNS };
	const struct net_rule *rule = subject->is_address ? NULL : find_rule(policy, subject, &look_up).best;

	return rule && rule->verdict == VERDICT_ALLOW;
}

/* "Only these are let through" holds for the host, on whatever port, however open the network is. */
static struct decision deny_unlisted(const struct net_rule *listing, const struct action *action)
{
	static const char no_port[] = "the policy lists the requests that this host may get, and none on this port";

	if (action->kind == ACTION_HTTP_REQUEST)
		return (struct decision){ VERDICT_DENY, listing->origin,
					  "no rule allows this method and path of the host",
					  "list them under http of the host's rule in network.allow of your policy" };
	return (struct decision){ VERDICT_DENY, listing->origin, no_port,
				  "add the port to the host's rule under network.allow of your policy" };
}

static struct decision decide_by_default(const struct policy *policy, const struct subject *subject,
					 const struct action *action)
{
	static const struct rule_origin own = { "builtin.loopback", "", 0 };
	bool is_shared = policy->network.mode == NETWORK_HOST;
	bool is_open = policy->network.default_verdict != VERDICT_DENY && !is_shared;
	static const char own_hint[] = "for a server of the machine outside, list its port under network.host_ports";
	static const struct rule_origin none = { "network.default", "", 0 };
	const struct rule_origin *origin =
		policy->network.default_origin.id ? &policy->network.default_origin : &none;

	if (!is_shared && action->kind == ACTION_NET_LISTEN)
		return (struct decision){ VERDICT_ALLOW, own, "listening is private to the sandbox's own network", "" };
	if (!is_shared && is_loopback(subject))
		return (struct decision){ VERDICT_ALLOW, own, "the sandbox has a loopback of its own", own_hint };
	if (is_open && subject->is_address && address_is_private_use(subject->address.bytes))
		return ask_private();
	/* No person can tell what is behind such an address: it is listed, or it is not reached. */
	if (is_open && subject->is_address && !address_is_public(subject->address.bytes))
		return deny_special();
	if (policy->network.default_verdict == VERDICT_ALLOW)
		return (struct decision){ VERDICT_ALLOW, *origin, "the network is open by default", "" };
	if (policy->network.default_verdict == VERDICT_ASK)
		return (struct decision){ VERDICT_ASK, *origin,
					  "the policy asks a person for hosts that no rule lists", ask_hint };
	if (action->kind == ACTION_HTTP_REQUEST)
		return (struct decision){ VERDICT_DENY, *origin, "no rule allows this method and path of the host",
					  "list them under http of the host's rule in network.allow of your policy" };
	if (action->kind == ACTION_NET_CONNECT && is_listed(policy, subject))
		return (struct decision){ VERDICT_DENY, *origin, "the policy allows this host, but not on this port",
					  "add the port to the host's rule under network.allow of your policy" };
	return (struct decision){ VERDICT_DENY, *origin, "no rule allows this host and port",
				  "list the host under network.allow of your policy" };
}

static struct decision decide_by_rule(const struct net_rule *rule, const struct action *action)
{
	static const char *const reasons[VERDICT_COUNT] = {
		[VERDICT_DENY] = "the policy denies this host",
		[VERDICT_ASK] = "the policy asks a person for this host",
		[VERDICT_STAGE] = "the policy stages this request",
		[VERDICT_SIMULATE] = "the policy answers in place of this host",
		[VERDICT_ALLOW] = "the policy allows this host",
	};

	return (struct decision){ rule->verdict, rule->origin, reasons[rule->verdict],
				  rule->verdict == VERDICT_ASK ? ask_hint : "",
				  action->kind == ACTION_HTTP_REQUEST ? rule->answer : NULL };
}

/* The rule about a loopback port of the host that says no, by number; NULL: there is none. */
static const struct net_rule *find_refusing_number(const struct policy *policy, const struct action *action)
{
	static const struct subject numbers[] = {
		{ .is_address = true, .address.bytes = { [10] = 0xff, 0xff, 127, 0, 0, 1 } },
		{ .is_address = true, .address.bytes = { [15] = 1 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		const struct net_rule *rule = find_rule(policy, &numbers[i], action).best;

		if (rule && rule->verdict < VERDICT_SIMULATE)
			return rule;
	}
	return NULL;
}

/* The host's own loopback, by whatever of its names: what rules say of "localhost" and of its addresses narrows it. */
static struct decision decide_host_port(const struct policy *policy, const struct host_port *port,
					const struct action *action)
{
	static const struct subject localhost = { .host = "localhost" };
	const struct net_rule *refusing = find_refusing_number(policy, action);
	struct search search = find_rule(policy, &localhost, action);

	if (action->kind == ACTION_NET_LISTEN)
		return (struct decision){ VERDICT_DENY, port->origin,
					  "this port of localhost leads to a server of the machine outside",
					  "listen on another port" };
	if (refusing && (!search.best || rank(refusing, action) < rank(search.best, action)))
		return decide_by_rule(refusing, action);
	if (search.best && !is_partial(search.best, action))
		return decide_by_rule(search.best, action);
	if (action->kind == ACTION_HTTP_REQUEST && search.listing && port_matches(search.listing, action))
		return deny_unlisted(search.listing, action);
	return (struct decision){ VERDICT_ALLOW, port->origin,
				  "the policy leads this port of localhost to the machine outside", "" };
}

const struct host_port *policy_host_port(const struct policy *policy, uint16_t port)
{
	for (size_t i = 0; i < policy->network.host_port_count; i++)
		if (policy->network.host_ports[i].port == port)
			return &policy->network.host_ports[i];
	return NULL;
}

static bool is_about_port(const struct subject *subject, const struct action *action)
{
	return action->kind == ACTION_NET_LISTEN ||
	       (is_loopback(subject) && (action->kind == ACTION_NET_CONNECT || action->kind == ACTION_HTTP_REQUEST));
}

struct decision policy_decide_net(const struct policy *policy, const struct action *action)
{
	const struct host_port *port;
	const struct net_rule *rule;
	struct subject subject;
	struct search search;

	if (!parse_subject(action->subject, &subject))
		return (struct decision){ VERDICT_DENY,
					  { "builtin.subject", "", 0 },
					  "this is no valid host name or address",
					  "give the plain lower-case name, without a trailing dot" };
	port = policy->network.mode == NETWORK_GATE && is_about_port(&subject, action)
		       ? policy_host_port(policy, action->port) : NULL;
	if (port)
		return decide_host_port(policy, port, action);
	if (action->is_outward && is_loopback(&subject))
		return (struct decision){ VERDICT_DENY, { "network.host_ports", "", 0 },
					  "the policy does not list this port of the machine outside",
					  "list it under network.host_ports of your policy" };
	search = find_rule(policy, &subject, action);
	rule = search.best;
	if (!rule && is_closed_by(&search, policy))
		return deny_unlisted(search.listing, action);
	if (!rule || (is_partial(rule, action) && policy->network.default_verdict == VERDICT_ALLOW))
		return decide_by_default(policy, &subject, action);
	return decide_by_rule(rule, action);
}

bool policy_rule_covers(const struct net_rule *rule, const struct action *request)
{
	struct subject subject;

	return rule->host && parse_subject(request->subject, &subject) && rule_covers(rule, &subject, request);
}

static bool limits_count_connections(const struct net_limits *limits)
{
	for (int kind = 0; kind < NET_LIMIT_COUNT; kind++)
		if (limits->of[kind].amount && kind != NET_LIMIT_RATE && kind != NET_LIMIT_REQUESTS)
			return true;
	return false;
}

bool policy_counts_connections(const struct policy *policy)
{
	bool counts = limits_count_connections(&policy->network.limits);

	for (size_t i = 0; !counts && i < policy->network.limited_count; i++)
		counts = limits_count_connections(policy->network.rules[policy->network.limited[i]].limits);
	return counts;
}

uint64_t policy_limited_rules(const struct policy *policy, const struct action *action)
{
	struct subject subject;
	uint64_t covering = 0;

	if (!policy->network.limited_count || !parse_subject(action->subject, &subject))
		return 0;
	for (size_t i = 0; i < policy->network.limited_count; i++)
		if (rule_covers(&policy->network.rules[policy->network.limited[i]], &subject, action))
			covering |= UINT64_C(1) << i;
	return covering;
}

struct decision policy_decide_resolved(const struct policy *policy, const uint8_t address[16], uint16_t port,
				       bool is_asked)
{
	struct action action = { .kind = ACTION_NET_CONNECT, .subject = "", .port = port };
	static const struct rule_origin none = { "builtin.public", "", 0 };
	struct subject subject = { .is_address = true };
	const struct net_rule *rule;
	struct search search;

	memcpy(subject.address.bytes, address, sizeof subject.address.bytes);
	find_hidden(&subject.address);
	search = find_rule(policy, &subject, &action);
	rule = search.best;
	if (!rule && is_closed_by(&search, policy))
		return deny_unlisted(search.listing, &action);
	/* It lets some requests to this address through, and those of a name are judged by the rules of the name. */
	if (rule && rule->verdict == VERDICT_ALLOW && rule->http_count)
		return (struct decision){ VERDICT_DENY, rule->origin,
					  "the name leads to an address with rules about requests",
					  "connect to the address itself, or list it as a cidr without http" };
	if (rule)
		return (struct decision){ rule->verdict, rule->origin, "a cidr rule of the policy names this address",
					  "" };
	if (address_is_private_use(address) && (is_asked || policy->network.default_verdict != VERDICT_DENY))
		return ask_private();
	if (!address_is_public(address))
		return deny_special();
	return (struct decision){ VERDICT_ALLOW, none, "the address is of the public internet", "" };
}

size_t policy_wildcards(const struct policy *policy, const struct action *connection, const struct net_rule **rules,
			size_t max)
{
	struct subject subject;
	size_t count = 0;

	if (!parse_subject(connection->subject, &subject) || subject.is_address)
		return 0;
	for (const char *dot = strchr(subject.host, '.'); dot; dot = strchr(dot + 1, '.'))
		for (size_t at = first_of_host(policy, dot); has_key(policy, at, dot); at++) {
			const struct net_rule *rule = &policy->network.rules[at];

			if (count < max && rule->verdict == VERDICT_ALLOW && rule->host[0] == '*' &&
			    leads_there(rule, &subject, connection))
				rules[count++] = rule;
		}
	return count;
}

uint64_t policy_label_limit(const struct policy *policy, const struct net_rule *rule)
{
	if (rule->limits && rule->limits->of[NET_LIMIT_LABELS].amount)
		return rule->limits->of[NET_LIMIT_LABELS].amount;
	/* Where any name can be reached, this one needs none below the wildcard. */
	return policy->network.default_verdict == VERDICT_ALLOW ? UINT64_MAX : NET_LABELS_DEFAULT;
}
