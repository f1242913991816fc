/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/same.h"

#include <string.h>

#include "base/str.h"

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
	[POLICY_PART_INJECT] = "network inject",
};

/* str_equal() for what may be NULL in both. */
static bool same_text(const char *a, const char *b)
{
	return a == b || str_equal(a, b);
}

static bool same_texts(const char *const *a, const char *const *b)
{
	static const char *const none[] = { NULL };

	a = a ? a : none;
	b = b ? b : none;
	while (*a && *b && str_equal(*a, *b))
		a++, b++;
	return !*a && !*b;
}

static bool same_paths(const struct path_rule *a, const struct path_rule *b, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!str_equal(a[i].pattern, b[i].pattern) || a[i].flags != b[i].flags ||
		    !same_texts(a[i].except, b[i].except) || !same_text(a[i].when, b[i].when))
			return false;
	return true;
}

static bool same_files(const struct policy *a, const struct policy *b)
{
	if (a->file_count != b->file_count || a->file_ask_count != b->file_ask_count ||
	    a->protect_count != b->protect_count || !str_equal(a->project, b->project) || !str_equal(a->home, b->home))
		return false;
	for (size_t i = 0; i < a->file_count; i++)
		if (!str_equal(a->files[i].pattern, b->files[i].pattern) || a->files[i].class != b->files[i].class ||
		    a->files[i].flags != b->files[i].flags || !same_texts(a->files[i].except, b->files[i].except))
			return false;
	return same_paths(a->file_asks, b->file_asks, a->file_ask_count) &&
	       same_paths(a->protects, b->protects, a->protect_count);
}

static bool same_exec(const struct policy *a, const struct policy *b)
{
	if (a->exec_count != b->exec_count || a->exec_default != b->exec_default ||
	    a->exec_new_binaries != b->exec_new_binaries ||
	    a->user_namespaces != b->user_namespaces)
		return false;
	for (size_t i = 0; i < a->exec_count; i++)
		if (a->exec[i].verdict != b->exec[i].verdict || !same_text(a->exec[i].program, b->exec[i].program) ||
		    a->exec[i].program_flags != b->exec[i].program_flags ||
		    !same_texts(a->exec[i].argv, b->exec[i].argv) || !same_texts(a->exec[i].except, b->exec[i].except))
			return false;
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
	for (size_t i = 0; i < RESOURCE_COUNT; i++)
		if (a->limits[i].value != b->limits[i].value)
			return false;
	for (size_t i = 0; i < RATE_KIND_COUNT; i++)
		if (a->rates[i].amount != b->rates[i].amount || a->rates[i].period_ms != b->rates[i].period_ms)
			return false;
	return cooldown_rules_equal(&a->cooldown, &b->cooldown);
}

static bool same_env(const struct policy *a, const struct policy *b)
{
	if (a->env_pass_count != b->env_pass_count || a->env_set_count != b->env_set_count)
		return false;
	for (size_t i = 0; i < a->env_pass_count; i++)
		if (!str_equal(a->env_pass[i].pattern, b->env_pass[i].pattern))
			return false;
	for (size_t i = 0; i < a->env_set_count; i++)
		if (!str_equal(a->env_set[i].name, b->env_set[i].name) ||
		    !str_equal(a->env_set[i].value, b->env_set[i].value))
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
	return a->data_secrets == b->data_secrets && a->data_pii == b->data_pii &&
	       a->data_injection == b->data_injection && a->data_outgoing == b->data_outgoing &&
	       same_texts(a->canaries, b->canaries) && same_texts(a->canary_files, b->canary_files);
}

static bool same_verify(const struct policy *a, const struct policy *b)
{
	return memcmp(&a->verify, &b->verify, sizeof a->verify) == 0;
}

static bool same_monitor(const struct policy *a, const struct policy *b)
{
	return a->monitor.baseline == b->monitor.baseline && a->monitor.sessions == b->monitor.sessions &&
	       a->monitor.learn == b->monitor.learn && a->monitor.unusual == b->monitor.unusual &&
	       a->monitor.canary == b->monitor.canary;
}

static bool same_audit(const struct policy *a, const struct policy *b)
{
	return a->audit_files == b->audit_files && a->audit_exec == b->audit_exec &&
	       a->audit_network == b->audit_network;
}

static bool same_stage(const struct policy *a, const struct policy *b)
{
	return a->stage_auto == b->stage_auto;
}

static bool same_degrade(const struct policy *a, const struct policy *b)
{
	return a->degrade == b->degrade;
}

static bool same_ask(const struct policy *a, const struct policy *b)
{
	return a->ask.timeout_ms == b->ask.timeout_ms && a->ask.bell == b->ask.bell && a->ask.prompt == b->ask.prompt &&
	       a->ask.desktop == b->ask.desktop && same_text(a->ask.webhook, b->ask.webhook) &&
	       same_text(a->ask.webhook_key, b->ask.webhook_key) &&
	       same_text(a->ask.webhook_key_file, b->ask.webhook_key_file) &&
	       a->ask.webhook_answers == b->ask.webhook_answers;
}

static bool same_trust(const struct policy *a, const struct policy *b)
{
	const struct trust_settings *x = &a->trust, *y = &b->trust;

	return same_text(x->agent, y->agent) && x->start == y->start && x->ceiling == y->ceiling &&
	       x->floor == y->floor && x->raise == y->raise && x->on_fall == y->on_fall &&
	       x->probation_sessions == y->probation_sessions && x->probation_at == y->probation_at &&
	       x->half_life_ms == y->half_life_ms;
}

static bool same_external(const struct policy *left, const struct policy *right)
{
	const struct external_verifier *a = &left->external, *b = &right->external;

	return same_texts(a->command, b->command) && same_text(a->url, b->url) && same_text(a->model, b->model) &&
	       same_text(a->secret, b->secret) && a->when == b->when && a->narrow == b->narrow &&
	       a->timeout_ms == b->timeout_ms && cooldown_rules_equal(&a->breaker, &b->breaker) &&
	       a->breaker_action == b->breaker_action;
}

static bool same_publish(const struct policy *a, const struct policy *b)
{
	if (a->publish_count != b->publish_count)
		return false;
	for (size_t i = 0; i < a->publish_count; i++)
		if (a->publish[i].port != b->publish[i].port || a->publish[i].host_port != b->publish[i].host_port ||
		    a->publish[i].is_inet6 != b->publish[i].is_inet6)
			return false;
	return true;
}

static const struct net_rule *next_injecting(const struct policy *policy, size_t *at)
{
	while (*at < policy->network_count) {
		const struct net_rule *rule = &policy->network[(*at)++];

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
	return same_requests(a, b) && same_text(a->host, b->host) && a->inject.kind == b->inject.kind &&
	       same_text(a->inject.name, b->inject.name) && same_text(a->inject.service, b->inject.service) &&
	       same_text(a->inject.region, b->inject.region) && same_text(a->inject.secret, b->inject.secret) &&
	       same_text(a->inject.env, b->inject.env);
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

uint32_t policy_compare_parts(const struct policy *a, const struct policy *b)
{
	static bool (*const same[POLICY_PART_COUNT])(const struct policy *, const struct policy *) = {
		[POLICY_PART_FILES] = same_files,	[POLICY_PART_EXEC] = same_exec,
		[POLICY_PART_LIMITS] = same_limits,	[POLICY_PART_ENV] = same_env,
		[POLICY_PART_DEVICES] = same_devices,	[POLICY_PART_DATA] = same_data,
		[POLICY_PART_AUDIT] = same_audit,	[POLICY_PART_STAGE] = same_stage,
		[POLICY_PART_DEGRADE] = same_degrade,	[POLICY_PART_ASK] = same_ask,
		[POLICY_PART_PUBLISH] = same_publish,	[POLICY_PART_INJECT] = same_inject,
		[POLICY_PART_MONITOR] = same_monitor,	[POLICY_PART_TRUST] = same_trust,
		[POLICY_PART_VERIFY] = same_verify,
		[POLICY_PART_EXTERNAL] = same_external,
	};
	uint32_t differing = 0;

	for (unsigned part = 0; part < POLICY_PART_COUNT; part++)
		if (!same[part](a, b))
			differing |= 1u << part;
	return differing;
}
