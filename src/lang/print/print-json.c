/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/num.h"
#include "lang/print/print.h"
#include "policy/publish.h"
#include "policy/scalars.h"

static void put_origin(struct json *json, const struct rule_origin *origin)
{
	json_string(json, "rule", origin->id);
	json_bytes(json, "file", origin->file, strlen(origin->file));
	json_u64(json, "line", origin->line);
}

static void put_strings(struct json *json, const char *key, const char *const *strings)
{
	json_array_begin(json, key);
	for (; strings && *strings; strings++)
		json_bytes(json, NULL, *strings, strlen(*strings));
	json_array_end(json);
}

static void put_rows(struct json *json, const struct policy *policy, enum scalar_id first, enum scalar_id last)
{
	for (enum scalar_id id = first; id <= last; id++) {
		const struct scalar_row *row = &scalar_rows[id];
		const char *name = row->json ? row->json : row->name;
		uint64_t value = scalar_get(id, policy);
		char text[SCALAR_TEXT_SIZE];

		/* A switch that got a third position stays one for who reads the other two. */
		if (row->unit == SCALAR_SWITCH || (id == SCALAR_NAMESPACES && value < EXEC_NAMESPACES_MOUNTS))
			json_bool(json, name, value);
		else if (row->unit == SCALAR_CHOICE || row->unit == SCALAR_TEXT)
			json_string(json, name, scalar_to_text(id, policy, text));
		else if (value == NUM_UNLIMITED)
			json_null(json, name);
		else
			json_u64(json, name, value);
	}
}

static void put_section(struct json *json, const char *name, const struct policy *policy, enum scalar_id first,
			enum scalar_id last)
{
	json_object_begin(json, name);
	put_rows(json, policy, first, last);
	json_object_end(json);
}

static void put_files(struct json *json, const struct policy *policy)
{
	json_array_begin(json, "files");
	for (size_t i = 0; i < policy->files.count; i++) {
		const struct file_rule *rule = &policy->files.rules[i];

		json_object_begin(json, NULL);
		json_bytes(json, "path", rule->pattern, strlen(rule->pattern));
		json_string(json, "class", file_class_names[rule->class]);
		json_bool(json, "glob", rule->flags & FILE_GLOB);
		json_bool(json, "optional", rule->flags & FILE_OPTIONAL);
		json_bool(json, "exec", !(rule->flags & FILE_NOEXEC));
		put_strings(json, "except", rule->except);
		put_origin(json, &rule->origin);
		json_object_end(json);
	}
	json_array_end(json);
	json_array_begin(json, "plan");
	for (size_t i = 0; i < policy->files.plan_count; i++) {
		const struct file_plan_entry *entry = &policy->files.plan[i];

		json_object_begin(json, NULL);
		json_bytes(json, "path", entry->path, strlen(entry->path));
		json_string(json, "class", file_class_names[entry->class]);
		json_bool(json, "optional", entry->flags & FILE_OPTIONAL);
		json_bool(json, "exec", !(entry->flags & FILE_NOEXEC));
		json_object_end(json);
	}
	json_array_end(json);
}

static void put_paths(struct json *json, const char *key, const struct path_rule *rules, size_t count)
{
	json_array_begin(json, key);
	for (size_t i = 0; i < count; i++) {
		json_object_begin(json, NULL);
		json_bytes(json, "path", rules[i].pattern, strlen(rules[i].pattern));
		json_bool(json, "glob", rules[i].flags & FILE_GLOB);
		put_strings(json, "except", rules[i].except);
		if (rules[i].when)
			json_string(json, "when", rules[i].when);
		put_origin(json, &rules[i].origin);
		json_object_end(json);
	}
	json_array_end(json);
}

static void put_answer(struct json *json, const struct net_answer *answer)
{
	json_object_begin(json, "answer");
	json_u64(json, "status", answer->status);
	json_object_begin(json, "headers");
	for (size_t i = 0; answer->fields && answer->fields[i]; i += 2)
		json_string(json, answer->fields[i], answer->fields[i + 1]);
	json_object_end(json);
	json_u64(json, "body_bytes", answer->body_size);
	json_string(json, "body_file", answer->body_file);
	json_object_end(json);
}

static void put_inject(struct json *json, const struct inject *inject)
{
	if (inject->kind == INJECT_NONE)
		return;
	json_object_begin(json, "inject");
	json_string(json, "kind", inject_kind_names[inject->kind]);
	if (inject->kind == INJECT_AWS) {
		json_string(json, "service", inject->service);
		json_string(json, "region", inject->region);
	} else {
		json_string(json, "name", inject->name);
	}
	json_string(json, "secret", inject->secret);
	json_string(json, "env", inject->env);
	json_object_end(json);
}

static void put_net_limits(struct json *json, const struct net_limits *limits)
{
	json_object_begin(json, "limits");
	for (size_t i = 0; limits && i < NET_LIMIT_COUNT; i++) {
		if (!limits->of[i].amount)
			continue;
		json_object_begin(json, net_limit_names[i]);
		json_u64(json, "amount", limits->of[i].amount);
		if (net_limit_has_period[i])
			json_u64(json, "period_ms", limits->of[i].period_ms);
		json_object_end(json);
	}
	json_object_end(json);
}

static void put_cooldown(struct json *json, const struct cooldown_rule *rule)
{
	if (!rule->denials) {
		json_null(json, "cooldown");
		return;
	}
	json_object_begin(json, "cooldown");
	json_u64(json, "denials", rule->denials);
	json_u64(json, "within_ms", rule->within_ms);
	json_u64(json, "pause_ms", rule->pause_ms);
	json_object_end(json);
}

static void put_publish(struct json *json, const struct policy *policy)
{
	char host[PUBLISH_TEXT_SIZE];

	json_array_begin(json, "publish");
	for (size_t i = 0; i < policy->network.publish_count; i++) {
		publish_host_format(&policy->network.publish[i], host);
		json_object_begin(json, NULL);
		json_u64(json, "port", policy->network.publish[i].port);
		json_string(json, "host", host);
		put_origin(json, &policy->network.publish[i].origin);
		json_object_end(json);
	}
	json_array_end(json);
}

static void put_host_ports(struct json *json, const struct policy *policy)
{
	json_array_begin(json, "host_ports");
	for (size_t i = 0; i < policy->network.host_port_count; i++) {
		json_object_begin(json, NULL);
		json_u64(json, "port", policy->network.host_ports[i].port);
		json_string(json, "name", policy->network.host_ports[i].name);
		put_origin(json, &policy->network.host_ports[i].origin);
		json_object_end(json);
	}
	json_array_end(json);
}

static void put_network(struct json *json, const struct policy *policy)
{
	static const char *const modes[NETWORK_MODE_COUNT] = { "none", "gate", "host" };

	json_object_begin(json, "network");
	json_string(json, "mode", modes[policy->network.mode]);
	put_rows(json, policy, SCALAR_NETWORK_DEFAULT, SCALAR_NETWORK_DEFAULT);
	json_array_begin(json, "rules");
	for (size_t i = 0; i < policy->network.count; i++) {
		const struct net_rule *rule = &policy->network.rules[i];

		json_object_begin(json, NULL);
		json_string(json, "verdict", verdict_names[rule->verdict]);
		json_string(json, rule->host ? "host" : "cidr", rule->host ? rule->host : rule->cidr);
		json_array_begin(json, "ports");
		for (size_t p = 0; p < rule->port_count; p++)
			json_u64(json, NULL, rule->ports[p]);
		json_array_end(json);
		put_strings(json, "except", rule->except);
		json_u64(json, "http_rules", rule->http_count);
		put_inject(json, &rule->inject);
		if (rule->answer)
			put_answer(json, rule->answer);
		put_net_limits(json, rule->limits);
		put_origin(json, &rule->origin);
		json_object_end(json);
	}
	json_array_end(json);
	put_net_limits(json, &policy->network.limits);
	put_cooldown(json, &policy->network.cooldown);
	put_publish(json, policy);
	put_host_ports(json, policy);
	json_object_end(json);
}

static void put_exec(struct json *json, const struct policy *policy)
{
	json_object_begin(json, "exec");
	put_rows(json, policy, SCALAR_EXEC_DEFAULT, SCALAR_NAMESPACES);
	json_array_begin(json, "rules");
	for (size_t i = 0; i < policy->exec.count; i++) {
		const struct exec_rule *rule = &policy->exec.rules[i];

		json_object_begin(json, NULL);
		json_string(json, "verdict", verdict_names[rule->verdict]);
		json_string(json, "program", rule->program);
		put_strings(json, "argv", rule->argv);
		put_strings(json, "except", rule->except);
		put_origin(json, &rule->origin);
		json_object_end(json);
	}
	json_array_end(json);
	json_object_end(json);
}

static void put_limits(struct json *json, const struct policy *policy)
{
	json_object_begin(json, "limits");
	put_rows(json, policy, SCALAR_RESOURCES, SCALAR_RESOURCES + RESOURCE_COUNT - 1);
	json_object_end(json);
	json_object_begin(json, "rates");
	for (size_t i = 0; i < RATE_KIND_COUNT; i++) {
		if (!policy->rates[i].amount)
			continue;
		json_object_begin(json, rate_kind_names[i]);
		json_u64(json, "amount", policy->rates[i].amount);
		json_u64(json, "period_ms", policy->rates[i].period_ms);
		json_object_end(json);
	}
	json_object_end(json);
	put_cooldown(json, &policy->cooldown);
}

static void put_env(struct json *json, const struct policy *policy)
{
	json_object_begin(json, "env");
	json_array_begin(json, "pass");
	for (size_t i = 0; i < policy->env.pass_count; i++)
		json_string(json, NULL, policy->env.pass[i].pattern);
	json_array_end(json);
	json_object_begin(json, "set");
	for (size_t i = 0; i < policy->env.set_count; i++)
		json_string(json, policy->env.set[i].name, policy->env.set[i].value);
	json_object_end(json);
	json_object_end(json);
}

static void put_external(struct json *json, const struct external_verifier *verifier)
{
	if (!external_is_given(verifier)) {
		json_null(json, "external");
		return;
	}
	json_object_begin(json, "external");
	json_array_begin(json, "command");
	for (const char *const *word = verifier->command; word && *word; word++)
		json_string(json, NULL, *word);
	json_array_end(json);
	json_string(json, "url", verifier->url);
	json_string(json, "model", verifier->model);
	json_string(json, "secret", verifier->secret);
	json_string(json, "when", verify_when_names[verifier->when]);
	json_string(json, "narrow", narrow_names[verifier->narrow]);
	json_u64(json, "timeout_ms", verifier->timeout_ms);
	json_object_begin(json, "breaker");
	json_u64(json, "denials", verifier->breaker.denials);
	json_u64(json, "within_ms", verifier->breaker.within_ms);
	json_string(json, "action", breaker_action_names[verifier->breaker_action]);
	json_object_end(json);
	json_object_end(json);
}

static void put_verify(struct json *json, const struct policy *policy)
{
	const struct verify_settings *verify = &policy->verify;

	json_object_begin(json, "verify");
	for (size_t row = 0; row < VERIFY_ROW_COUNT; row++) {
		json_object_begin(json, verify_row_names[row]);
		for (size_t sureness = 0; sureness < VERIFY_SURENESS_COUNT; sureness++)
			json_string(json, verify_sureness_names[sureness],
				verify_action_names[verify->of[row][sureness]]);
		json_object_end(json);
	}
	put_external(json, &policy->external);
	json_object_end(json);
}

static void put_trust(struct json *json, const struct policy *policy)
{
	const struct trust_settings *trust = &policy->trust;

	if (!trust->is_given) {
		json_null(json, "trust");
		return;
	}
	json_object_begin(json, "trust");
	put_rows(json, policy, SCALAR_TRUST_AGENT, SCALAR_TRUST_FLOOR);
	json_string(json, "raise", trust->raise == TRUST_NONE ? NULL : trust_level_names[trust->raise]);
	if (trust->probation_sessions)
		put_section(json, "probation", policy, SCALAR_TRUST_SESSIONS, SCALAR_TRUST_AT);
	else
		json_null(json, "probation");
	put_rows(json, policy, SCALAR_TRUST_ON_FALL, SCALAR_TRUST_HALF_LIFE);
	json_object_end(json);
}

static void put_agent_files(struct json *json, const char *name, const char *const *files)
{
	json_array_begin(json, name);
	for (; files && *files; files += 2) {
		json_object_begin(json, NULL);
		json_bytes(json, "path", files[0], strlen(files[0]));
		json_bytes(json, "content", files[1], strlen(files[1]));
		json_object_end(json);
	}
	json_array_end(json);
}

static void put_agent(struct json *json, const struct agent_settings *agent)
{
	json_object_begin(json, "agent");
	put_strings(json, "command", agent->command);
	put_strings(json, "directories", agent->directories);
	put_agent_files(json, "files", agent->files);
	put_agent_files(json, "settings", agent->settings);
	json_object_end(json);
}

static void put_rest(struct json *json, const struct policy *policy)
{
	json_array_begin(json, "devices");
	for (size_t i = 0; i < policy->device_count; i++)
		json_string(json, NULL, policy->devices[i].name);
	json_array_end(json);
	json_object_begin(json, "data");
	put_rows(json, policy, SCALAR_DATA_SECRETS, SCALAR_DATA_OUTGOING);
	put_strings(json, "canaries", policy->data.canaries);
	put_strings(json, "canary_files", policy->data.canary_files);
	json_object_end(json);
	put_section(json, "audit", policy, SCALAR_AUDIT_FILES, SCALAR_AUDIT_NETWORK);
	put_section(json, "stage", policy, SCALAR_STAGE_AUTO, SCALAR_STAGE_BACKEND);
	put_section(json, "asking", policy, SCALAR_ASK_TIMEOUT, SCALAR_ASK_WEBHOOK_ANSWERS);
	put_verify(json, policy);
	put_section(json, "monitor", policy, SCALAR_MONITOR_BASELINE, SCALAR_MONITOR_CANARY);
	put_trust(json, policy);
	put_agent(json, &policy->agent);
	json_array_begin(json, "degrade");
	for (unsigned i = 0; i < WALL_COUNT; i++)
		if (policy->degrade >> i & 1)
			json_string(json, NULL, wall_names[i]);
	json_array_end(json);
	json_array_begin(json, "unenforced");
	for (size_t i = 0; i < policy->unenforced_count; i++) {
		json_object_begin(json, NULL);
		json_string(json, "what", policy->unenforced[i].what);
		put_origin(json, &policy->unenforced[i].origin);
		json_object_end(json);
	}
	json_array_end(json);
}

void print_policy_json(const struct policy *policy, struct json *json)
{
	size_t count;
	const struct path_rule *protects = policy_protects(policy, &count);

	json_object_begin(json, NULL);
	json_bytes(json, "name", policy->name, strlen(policy->name));
	json_string(json, "level", trust_level_names[policy->level]);
	json_bytes(json, "project", policy->project, strlen(policy->project));
	json_bytes(json, "home", policy->home, strlen(policy->home));
	put_files(json, policy);
	put_paths(json, "ask", policy->files.asks, policy->files.ask_count);
	put_paths(json, "protect", protects, count);
	put_network(json, policy);
	put_exec(json, policy);
	put_limits(json, policy);
	put_env(json, policy);
	put_rest(json, policy);
	json_object_end(json);
}
