/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/compare/parts.h"

#include <string.h>

#include "base/str.h"
#include "policy/scalars.h"

const char *const policy_part_names[POLICY_PART_COUNT] = {
	[POLICY_PART_FILES] = "files",
	[POLICY_PART_EXEC] = "exec",
	[POLICY_PART_LIMITS] = "resources and time",
	[POLICY_PART_ENV] = "env",
	[POLICY_PART_DEVICES] = "devices",
	[POLICY_PART_DATA] = "data",
	[POLICY_PART_AUDIT] = "audit",
	[POLICY_PART_STAGE] = "stage",
	[POLICY_PART_EXTERNAL] = "verify.external",
	[POLICY_PART_DEGRADE] = "degrade",
	[POLICY_PART_ASK] = "ask",
	[POLICY_PART_MONITOR] = "monitor",
	[POLICY_PART_TRUST] = "trust",
	[POLICY_PART_VERIFY] = "verify",
	[POLICY_PART_PUBLISH] = "network.publish",
	[POLICY_PART_HOST_PORTS] = "network.host_ports",
	[POLICY_PART_INJECT] = "network inject",
	[POLICY_PART_AGENT] = "agent",
};

static bool same_texts(const char *const *a, const char *const *b)
{
	static const char *const none[] = { NULL };

	a = a ? a : none;
	b = b ? b : none;
	while (*a && *b && str_equal(*a, *b))
		a++, b++;
	return !*a && !*b;
}

static bool same_paths(const struct path_rule *a, size_t count, const struct path_rule *b, size_t b_count)
{
	if (count != b_count)
		return false;
	for (size_t i = 0; i < count; i++)
		if (!str_equal(a[i].pattern, b[i].pattern) || a[i].flags != b[i].flags ||
		    !same_texts(a[i].except, b[i].except) || !str_equal(a[i].when, b[i].when))
			return false;
	return true;
}

static bool same_files(const struct policy *a, const struct policy *b)
{
	size_t count, b_count;
	const struct path_rule *protects = policy_protects(a, &count), *b_protects = policy_protects(b, &b_count);

	if (a->files.count != b->files.count || !str_equal(a->project, b->project) || !str_equal(a->home, b->home))
		return false;
	for (size_t i = 0; i < a->files.count; i++) {
		const struct file_rule *one = &a->files.rules[i], *other = &b->files.rules[i];

		if (!str_equal(one->pattern, other->pattern) || one->class != other->class ||
		    one->flags != other->flags || !same_texts(one->except, other->except))
			return false;
	}
	return same_paths(a->files.asks, a->files.ask_count, b->files.asks, b->files.ask_count) &&
	       same_paths(protects, count, b_protects, b_count);
}

static bool same_exec(const struct policy *a, const struct policy *b)
{
	if (a->exec.count != b->exec.count)
		return false;
	for (size_t i = 0; i < a->exec.count; i++) {
		const struct exec_rule *one = &a->exec.rules[i], *other = &b->exec.rules[i];

		if (one->verdict != other->verdict || !str_equal(one->program, other->program) ||
		    one->program_flags != other->program_flags || !same_texts(one->argv, other->argv) ||
		    !same_texts(one->except, other->except))
			return false;
	}
	return true;
}

bool cooldown_rules_equal(const struct cooldown_rule *a, const struct cooldown_rule *b)
{
	return a->denials == b->denials && a->within_ms == b->within_ms && a->pause_ms == b->pause_ms;
}

bool cooldown_rule_is_wider(const struct cooldown_rule *from, const struct cooldown_rule *to)
{
	return from->denials && (!to->denials || to->denials > from->denials || to->within_ms < from->within_ms ||
				 to->pause_ms < from->pause_ms);
}

static bool same_limits(const struct policy *a, const struct policy *b)
{
	for (size_t i = 0; i < RATE_KIND_COUNT; i++)
		if (a->rates[i].amount != b->rates[i].amount || a->rates[i].period_ms != b->rates[i].period_ms)
			return false;
	return cooldown_rules_equal(&a->cooldown, &b->cooldown);
}

static bool same_env(const struct policy *a, const struct policy *b)
{
	if (a->env.pass_count != b->env.pass_count || a->env.set_count != b->env.set_count)
		return false;
	for (size_t i = 0; i < a->env.pass_count; i++)
		if (!str_equal(a->env.pass[i].pattern, b->env.pass[i].pattern))
			return false;
	for (size_t i = 0; i < a->env.set_count; i++)
		if (!str_equal(a->env.set[i].name, b->env.set[i].name) ||
		    !str_equal(a->env.set[i].value, b->env.set[i].value))
			return false;
	return true;
}

static bool same_devices(const struct policy *a, const struct policy *b)
{
	if (a->device_count != b->device_count)
		return false;
	for (size_t i = 0; i < a->device_count; i++)
		if (!str_equal(a->devices[i].name, b->devices[i].name))
			return false;
	return true;
}

static bool same_data(const struct policy *a, const struct policy *b)
{
	return same_texts(a->data.canaries, b->data.canaries) && same_texts(a->data.canary_files, b->data.canary_files);
}

static bool same_agent(const struct policy *a, const struct policy *b)
{
	return same_texts(a->agent.command, b->agent.command) &&
	       same_texts(a->agent.directories, b->agent.directories) &&
	       same_texts(a->agent.files, b->agent.files) && same_texts(a->agent.settings, b->agent.settings);
}

static bool same_verify(const struct policy *a, const struct policy *b)
{
	return memcmp(&a->verify, &b->verify, sizeof a->verify) == 0;
}

static bool same_degrade(const struct policy *a, const struct policy *b)
{
	return a->degrade == b->degrade;
}

static bool same_external(const struct policy *left, const struct policy *right)
{
	const struct external_verifier *a = &left->external, *b = &right->external;

	return same_texts(a->command, b->command) && str_equal(a->url, b->url) && str_equal(a->model, b->model) &&
	       str_equal(a->secret, b->secret) && a->when == b->when && a->narrow == b->narrow &&
	       a->timeout_ms == b->timeout_ms && cooldown_rules_equal(&a->breaker, &b->breaker) &&
	       a->breaker_action == b->breaker_action;
}

static bool same_publish(const struct policy *a, const struct policy *b)
{
	if (a->network.publish_count != b->network.publish_count)
		return false;
	for (size_t i = 0; i < a->network.publish_count; i++) {
		const struct publish_rule *one = &a->network.publish[i], *other = &b->network.publish[i];

		if (one->port != other->port || one->host_port != other->host_port ||
		    one->is_inet6 != other->is_inet6 || one->is_on_demand != other->is_on_demand)
			return false;
	}
	return true;
}

/* Each port is held inside from the start, so that none can be added later. */
static bool has_host_ports(const struct policy *a, const struct policy *b)
{
	for (size_t i = 0; i < b->network.host_port_count; i++) {
		const struct host_port *port = policy_host_port(a, b->network.host_ports[i].port);

		if (!port || (b->network.host_ports[i].name && !str_equal(port->name, b->network.host_ports[i].name)))
			return false;
	}
	return true;
}

static const struct net_rule *next_injecting(const struct policy *policy, size_t *at)
{
	while (*at < policy->network.count) {
		const struct net_rule *rule = &policy->network.rules[(*at)++];

		if (rule->inject.kind != INJECT_NONE)
			return rule;
	}
	return NULL;
}

static bool same_requests(const struct net_rule *a, const struct net_rule *b)
{
	if (a->http_count != b->http_count || a->port_count != b->port_count ||
	    (a->port_count && memcmp(a->ports, b->ports, a->port_count * sizeof *a->ports) != 0))
		return false;
	for (size_t i = 0; i < a->http_count; i++)
		if (!same_texts(a->http[i].methods, b->http[i].methods) ||
		    !same_texts(a->http[i].paths, b->http[i].paths))
			return false;
	return same_texts(a->except, b->except);
}

static bool same_use(const struct net_rule *a, const struct net_rule *b)
{
	return same_requests(a, b) && str_equal(a->host, b->host) && a->inject.kind == b->inject.kind &&
	       str_equal(a->inject.name, b->inject.name) && str_equal(a->inject.service, b->inject.service) &&
	       str_equal(a->inject.region, b->inject.region) && str_equal(a->inject.secret, b->inject.secret) &&
	       str_equal(a->inject.env, b->inject.env);
}

/* Secrets are fetched once, placeholders are in the environment, and what goes where is settled at the start. */
static bool same_inject(const struct policy *a, const struct policy *b)
{
	size_t i = 0, j = 0;
	const struct net_rule *x, *y;

	do {
		x = next_injecting(a, &i);
		y = next_injecting(b, &j);
	} while (x && y && same_use(x, y));
	return !x && !y;
}

/* The rows of each part, and what else is in it; NULL: nothing. */
static const struct {
	enum scalar_id first, last;
	bool (*same)(const struct policy *a, const struct policy *b);
} parts[POLICY_PART_COUNT] = {
#define NO_ROWS 1, 0
	[POLICY_PART_FILES] = { NO_ROWS, same_files },
	[POLICY_PART_EXEC] = { SCALAR_EXEC_DEFAULT, SCALAR_NAMESPACES, same_exec },
	[POLICY_PART_LIMITS] = { SCALAR_RESOURCES, SCALAR_RESOURCES + RESOURCE_COUNT - 1, same_limits },
	[POLICY_PART_ENV] = { NO_ROWS, same_env },
	[POLICY_PART_DEVICES] = { NO_ROWS, same_devices },
	[POLICY_PART_DATA] = { SCALAR_DATA_SECRETS, SCALAR_DATA_OUTGOING, same_data },
	[POLICY_PART_AUDIT] = { SCALAR_AUDIT_FILES, SCALAR_AUDIT_NETWORK, NULL },
	[POLICY_PART_STAGE] = { SCALAR_STAGE_AUTO, SCALAR_STAGE_BACKEND, NULL },
	[POLICY_PART_EXTERNAL] = { NO_ROWS, same_external },
	[POLICY_PART_AGENT] = { NO_ROWS, same_agent },
	[POLICY_PART_DEGRADE] = { NO_ROWS, same_degrade },
	[POLICY_PART_ASK] = { SCALAR_ASK_TIMEOUT, SCALAR_ASK_WEBHOOK_ANSWERS, NULL },
	[POLICY_PART_MONITOR] = { SCALAR_MONITOR_BASELINE, SCALAR_MONITOR_CANARY, NULL },
	[POLICY_PART_TRUST] = { SCALAR_TRUST_AGENT, SCALAR_TRUST_AT, NULL },
	[POLICY_PART_VERIFY] = { NO_ROWS, same_verify },
	[POLICY_PART_PUBLISH] = { NO_ROWS, same_publish },
	[POLICY_PART_HOST_PORTS] = { NO_ROWS, has_host_ports },
	[POLICY_PART_INJECT] = { NO_ROWS, same_inject },
#undef NO_ROWS
};

uint32_t policy_compare_parts(const struct policy *a, const struct policy *b)
{
	uint32_t differing = 0;

	for (unsigned part = 0; part < POLICY_PART_COUNT; part++)
		if (!scalars_equal(parts[part].first, parts[part].last, a, b) ||
		    (parts[part].same && !parts[part].same(a, b)))
			differing |= 1u << part;
	return differing;
}
