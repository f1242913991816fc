/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "lang/bind/bind.h"
#include "policy/host-port.h"
#include "policy/publish.h"

/* What the network may be used for in numbers, and which ports inside the host can reach. */

/* Each host is remembered, so there is an end to them. */
static void bind_hosts(struct binder *binder, const struct key *key, const struct node *node)
{
	uint64_t count;

	if (num_parse_count(node->text, &count) == 0 && count != NUM_UNLIMITED && count > NET_HOSTS_MAX)
		diag_add(binder->diags, node->place, "at most %d hosts can be told apart", NET_HOSTS_MAX);
	else
		bind_count(binder, key, node);
}

/* Each name is remembered. */
static void bind_labels(struct binder *binder, const struct key *key, const struct node *node)
{
	uint64_t bytes;

	if (num_parse_size(node->text, &bytes) == 0 && bytes != NUM_UNLIMITED && bytes > NET_LABELS_MAX)
		diag_add(binder->diags, node->place, "at most 1MiB of names can be told apart; or \"unlimited\"");
	else
		bind_size(binder, key, node);
}

/* Where they go begins at base: the same keys for the session and for one rule. */
#define LIMIT_KEYS(base)                                                                                   \
	{ "rate", KEY_SCALAR, bind_rate, .value = (base) + NET_LIMIT_RATE },                                \
	{ "total", KEY_SCALAR, bind_size, .value = (base) + NET_LIMIT_TOTAL },                              \
	{ "in", KEY_SCALAR, bind_size, .value = (base) + NET_LIMIT_IN },                                    \
	{ "out", KEY_SCALAR, bind_size, .value = (base) + NET_LIMIT_OUT },                                  \
	{ "requests", KEY_SCALAR, bind_rate, .value = (base) + NET_LIMIT_REQUESTS },                        \
	{ "new_connections", KEY_SCALAR, bind_rate, .value = (base) + NET_LIMIT_NEW_CONNECTIONS },          \
	{ "connections", KEY_SCALAR, bind_count, .value = (base) + NET_LIMIT_CONNECTIONS },                 \
	{ "hosts", KEY_SCALAR, bind_hosts, .value = (base) + NET_LIMIT_HOSTS },                             \
	{ "labels", KEY_SCALAR, bind_labels, .value = (base) + NET_LIMIT_LABELS }

static void bind_denials(struct binder *binder, const struct key *key, const struct node *node)
{
	uint64_t count;

	if (num_parse_count(node->text, &count) < 0 || !count || count > COOLDOWN_DENIALS_MAX)
		bind_expected(binder, node, "a number of refusals from 1 to 256");
	else
		bind_count(binder, key, node);
}

static void bind_span(struct binder *binder, const struct key *key, const struct node *node)
{
	uint64_t ms;

	if (num_parse_duration(node->text, &ms) < 0 || ms == NUM_UNLIMITED)
		bind_expected(binder, node, "a time with its unit such as 10s or 5m");
	else
		bind_duration(binder, key, node);
}

/* Where they go begins at base: of the network alone, or of every gate. */
#define COOLDOWN_KEYS(base)                                                                                \
	{ "denials", KEY_SCALAR, bind_denials, .value = (base) },                                           \
	{ "within", KEY_SCALAR, bind_span, .value = (base) + 1 },                                           \
	{ "pause", KEY_SCALAR, bind_span, .value = (base) + 2 }

static const struct key network_cooldown_keys[] = { COOLDOWN_KEYS(SCALAR_COOLDOWN_DENIALS) };
static const struct key time_cooldown_keys[] = { COOLDOWN_KEYS(SCALAR_TIME_COOLDOWN_DENIALS) };

static void bind_in_section(struct binder *binder, const char *section, const struct key *keys, size_t count,
			    const struct node *node)
{
	const char *outer = binder->section;

	binder->section = section ? section : ""; /* out of memory, which is said in the end */
	bind_map(binder, keys, count, node);
	binder->section = outer;
}

static void bind_whole_cooldown(struct binder *binder, const char *section, const struct key keys[3],
				const struct node *node)
{
	size_t set = 0;

	bind_in_section(binder, section, keys, 3, node);
	for (const struct node *at = node->first; at; at = at->next)
		set++;
	if (set < 3)
		diag_add(binder->diags, node->place, "a cool-down needs \"denials\", \"within\" and \"pause\"");
}

static void bind_cooldown(struct binder *binder, const struct key *key, const struct node *node)
{
	bind_whole_cooldown(binder, "network.limits.cooldown", network_cooldown_keys, node);
}

void bind_time_cooldown(struct binder *binder, const struct key *key, const struct node *node)
{
	bind_whole_cooldown(binder, "time.cooldown", time_cooldown_keys, node);
}

/* What the network's gate has a meter for goes there: another spelling of network.limits, and the same scalar. */
static const struct key rate_keys[] = {
	{ "exec", KEY_SCALAR, bind_rate, .value = SCALAR_RATES + RATE_EXEC },
	{ "file.read", KEY_SCALAR, bind_rate, .value = SCALAR_RATES + RATE_FILE_READ },
	{ "file.write", KEY_SCALAR, bind_rate, .value = SCALAR_RATES + RATE_FILE_WRITE },
	{ "net.connect", KEY_SCALAR, bind_rate, .value = SCALAR_NETWORK_LIMITS + NET_LIMIT_NEW_CONNECTIONS },
	{ "http.request", KEY_SCALAR, bind_rate, .value = SCALAR_NETWORK_LIMITS + NET_LIMIT_REQUESTS },
};

void bind_time_rate(struct binder *binder, const struct key *key, const struct node *node)
{
	bind_in_section(binder, "time.rate", rate_keys, ARRAY_SIZE(rate_keys), node);
}

static const struct key limit_keys[] = {
	LIMIT_KEYS(SCALAR_NETWORK_LIMITS),
	{ "cooldown", KEY_FREE, bind_cooldown },
};

void bind_limits(struct binder *binder, const struct key *key, const struct node *node)
{
	bind_in_section(binder, "network.limits", limit_keys, ARRAY_SIZE(limit_keys), node);
}

static const struct key rule_limit_keys[] = { LIMIT_KEYS(0) };

void bind_rule_limits(struct binder *binder, const struct key *key, const struct node *node)
{
	struct draft_net *net = (struct draft_net *)binder->rule;

	if (net->verdict != VERDICT_ALLOW) {
		diag_add(binder->diags, node->place, "only a rule that allows has limits");
		return;
	}
	net->limits = arena_alloc(binder->arena, NET_LIMIT_COUNT * sizeof *net->limits);
	if (!net->limits)
		return;
	binder->scalars = net->limits;
	bind_in_section(binder, arena_format(binder->arena, "%s.limits", net->from.id), rule_limit_keys,
			ARRAY_SIZE(rule_limit_keys), node);
	binder->scalars = binder->draft->scalars;
}

/* ---- publish ---- */

static void bind_published(struct binder *binder, const struct key *key, const struct node *node)
{
	struct draft_publish *publish = (struct draft_publish *)binder->rule;
	struct publish_rule rule = publish->rule;
	int r = publish_parse(node->text, &rule);

	publish->from.text = node->text;
	publish->from.place = node->place;
	if (r == -EADDRNOTAVAIL)
		diag_add(binder->diags, node->place,
			 "\"%.60s\": a port is published on loopback only, 127.0.0.1 or [::1]", node->text);
	else if (r < 0)
		bind_expected(binder, node, "a port, or a host port and a port such as 18080:8080");
	else
		publish->rule = rule;
}

static void bind_host_side(struct binder *binder, const struct key *key, const struct node *node)
{
	struct draft_publish *publish = (struct draft_publish *)binder->rule;
	int r = publish_parse_host(node->text, &publish->rule);

	if (r == -EADDRNOTAVAIL)
		diag_add(binder->diags, node->place,
			 "\"%.60s\": a port is published on loopback only, 127.0.0.1 or [::1]", node->text);
	else if (r < 0)
		bind_expected(binder, node, "a port of the host such as 127.0.0.1:18080");
}

static void bind_on_demand(struct binder *binder, const struct key *key, const struct node *node)
{
	if (node->is_quoted || (!str_equal(node->text, "true") && !str_equal(node->text, "false")))
		bind_expected(binder, node, "true or false");
	else
		((struct draft_publish *)binder->rule)->rule.is_on_demand = node->text[0] == 't';
}

static const struct key publish_item_keys[] = {
	{ "port", KEY_SCALAR, bind_published },
	{ "host", KEY_SCALAR, bind_host_side },
	{ "on_demand", KEY_SCALAR, bind_on_demand },
};

void bind_publish(struct binder *binder, const struct key *key, const struct node *node)
{
	struct draft_publish *publish = bind_add(binder, &binder->draft->publish, sizeof *publish, node);

	if (!publish)
		return;
	binder->rule = &publish->from;
	bind_item(binder, publish_item_keys, ARRAY_SIZE(publish_item_keys), node);
	if (!publish->from.text[0] && node->kind == NODE_MAP)
		diag_add(binder->diags, node->place, "this rule has no \"port\"");
}

/* ---- host_ports ---- */

static void bind_host_port_text(struct binder *binder, const struct key *key, const struct node *node)
{
	struct draft_host_port *port = (struct draft_host_port *)binder->rule;
	int r = host_port_parse(node->text, &port->port);

	port->from.text = node->text;
	port->from.place = node->place;
	if (r < 0)
		diag_add(binder->diags, node->place, "\"%.60s\" is no port of this machine: %s", node->text,
			 host_port_problem(r));
}

static const struct key host_port_item_keys[] = {
	{ "port", KEY_SCALAR, bind_host_port_text },
};

void bind_host_port(struct binder *binder, const struct key *key, const struct node *node)
{
	struct draft_host_port *port = bind_add(binder, &binder->draft->host_ports, sizeof *port, node);

	if (!port)
		return;
	binder->rule = &port->from;
	bind_item(binder, host_port_item_keys, ARRAY_SIZE(host_port_item_keys), node);
	if (!port->from.text[0] && node->kind == NODE_MAP)
		diag_add(binder->diags, node->place, "this rule has no \"port\"");
}
