/* SPDX-License-Identifier: Apache-2.0 */
#include "lang/print/print.h"

#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "base/utf8.h"
#include "policy/glob.h"
#include "policy/limit-text.h"
#include "policy/publish.h"
#include "policy/scalars.h"

/* Everything is quoted: no text can become a key, a number, an alias or another line. */
static void put_quoted_n(struct buf *out, const void *bytes, size_t size)
{
	const uint8_t *at = bytes;
	uint32_t rune;

	buf_put_char(out, '"');
	while (size) {
		size_t used = utf8_decode(at, size, &rune);

		if (!used || rune < 0x20 || rune == 0x7f)
			buf_printf(out, "\\x%02x", at[0]);
		else if (rune == '"' || rune == '\\')
			buf_printf(out, "\\%c", (char)rune);
		else if (utf8_is_unsafe(rune))
			buf_printf(out, "\\U%08x", (unsigned)rune);
		else
			buf_put(out, at, used);
		used = used ? used : 1;
		at += used;
		size -= used;
	}
	buf_put_char(out, '"');
}

void print_quoted(struct buf *out, const char *text)
{
	put_quoted_n(out, text, strlen(text));
}

static void put_origin(struct buf *out, const struct rule_origin *origin)
{
	if (!origin->file[0]) {
		buf_printf(out, "  # %s\n", origin->id[0] ? origin->id : "default");
		return;
	}
	buf_put_text(out, "  # ");
	buf_put_escaped(out, origin->file, strlen(origin->file), 0);
	buf_printf(out, ":%u\n", origin->line);
}

static void put_strings(struct buf *out, const char *key, const char *const *strings)
{
	if (!strings || !*strings)
		return;
	buf_printf(out, ", %s: [", key);
	for (size_t i = 0; strings[i]; i++) {
		buf_put_text(out, i ? ", " : "");
		print_quoted(out, strings[i]);
	}
	buf_put_char(out, ']');
}

/* Names of secrets, and paths of files that are planted: what has a slash. */
static void put_canaries(struct buf *out, const struct policy *policy)
{
	const char *const *lists[] = { policy->data.canaries, policy->data.canary_files };
	size_t shown = 0;

	for (size_t list = 0; list < ARRAY_SIZE(lists); list++)
		for (size_t i = 0; lists[list] && lists[list][i]; i++) {
			buf_put_text(out, shown++ ? ", " : ", canaries: [");
			print_quoted(out, lists[list][i]);
		}
	buf_put_text(out, shown ? "]" : "");
}

/* Header lines are printed once, when something follows: sections that are empty stay away. */
struct heading {
	const char *section, *list;
	bool has_section, has_list;
};

static void head(struct heading *heading, const char *list, struct buf *out)
{
	if (!heading->has_section)
		buf_printf(out, "%s:\n", heading->section);
	heading->has_section = true;
	if (heading->list != list)
		buf_printf(out, "  %s:\n", list);
	heading->list = list;
}

void print_file_rule(struct buf *out, const struct file_rule *rule)
{
	buf_put_text(out, "    - {path: ");
	print_quoted(out, rule->pattern);
	put_strings(out, "except", rule->except);
	if (rule->flags & FILE_OPTIONAL)
		buf_put_text(out, ", optional: true");
	if (rule->flags & FILE_NOEXEC)
		buf_put_text(out, ", exec: false");
	if (rule->flags & FILE_GUARDED)
		buf_put_text(out, ", protect: true");
	buf_put_char(out, '}');
	put_origin(out, &rule->origin);
}

void print_path_rule(struct buf *out, const struct path_rule *rule)
{
	buf_put_text(out, "    - {path: ");
	print_quoted(out, rule->pattern);
	put_strings(out, "except", rule->except);
	if (rule->flags & PATH_GIT)
		buf_put_text(out, ", data: git");
	if (rule->flags & PATH_PACKAGE)
		buf_put_text(out, ", content: package.json");
	if (rule->flags & PATH_FILE)
		buf_put_text(out, ", names: file");
	if (rule->flags & PATH_BUILD)
		buf_put_text(out, ", runs: build");
	if (rule->when) {
		buf_put_text(out, ", when: ");
		print_quoted(out, rule->when);
	}
	buf_put_char(out, '}');
	put_origin(out, &rule->origin);
}

static void put_paths(struct buf *out, struct heading *heading, const char *list,
		      const struct path_rule *rules, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		head(heading, list, out);
		print_path_rule(out, &rules[i]);
	}
}

static void put_files(struct buf *out, const struct policy *policy)
{
	static const enum file_class order[] = { FILE_READ, FILE_SCRATCH, FILE_STAGE, FILE_WRITE, FILE_MASK };
	struct heading heading = { .section = "files" };
	size_t count;
	const struct path_rule *protects = policy_protects(policy, &count);

	for (size_t c = 0; c < ARRAY_SIZE(order); c++)
		for (size_t i = 0; i < policy->files.count; i++) {
			const struct file_rule *rule = &policy->files.rules[i];

			/* Built-in rules come with every policy, and are no one's to write. */
			if (rule->class != order[c] || (!rule->origin.line && !rule->origin.file[0]))
				continue;
			head(&heading, file_class_names[order[c]], out);
			print_file_rule(out, rule);
		}
	put_paths(out, &heading, "ask", policy->files.asks, policy->files.ask_count);
	put_paths(out, &heading, "protect", protects, count);
}

static void put_http(struct buf *out, const struct net_rule *rule)
{
	if (!rule->http_count)
		return;
	buf_put_text(out, ", http: [");
	for (size_t i = 0; i < rule->http_count; i++) {
		static const char *const none[] = { NULL };
		const char *const *methods = rule->http[i].methods ? rule->http[i].methods : none;

		buf_printf(out, "%s{methods: [", i ? ", " : "");
		for (size_t m = 0; methods[m]; m++) {
			buf_put_text(out, m ? ", " : "");
			print_quoted(out, methods[m]);
		}
		buf_put_char(out, ']');
		put_strings(out, "paths", rule->http[i].paths);
		buf_put_char(out, '}');
	}
	buf_put_char(out, ']');
}

static void put_answer(struct buf *out, const struct net_answer *answer)
{
	buf_printf(out, ", answer: {status: %u", answer->status);
	for (size_t i = 0; answer->fields && answer->fields[i]; i += 2) {
		buf_put_text(out, i ? ", " : ", headers: {");
		print_quoted(out, answer->fields[i]);
		buf_put_text(out, ": ");
		print_quoted(out, answer->fields[i + 1]);
		buf_put_text(out, answer->fields[i + 2] ? "" : "}");
	}
	if (answer->body_file) {
		buf_put_text(out, ", body_file: ");
		print_quoted(out, answer->body_file);
	} else if (answer->body_size) {
		buf_put_text(out, ", body: ");
		put_quoted_n(out, answer->body, answer->body_size);
	}
	buf_put_char(out, '}');
}

static void put_inject(struct buf *out, const struct inject *inject)
{
	buf_put_text(out, ", inject: {");
	if (inject->kind == INJECT_AWS) {
		buf_put_text(out, "aws: {service: ");
		print_quoted(out, inject->service);
		buf_put_text(out, ", region: ");
		print_quoted(out, inject->region);
		buf_put_char(out, '}');
	} else {
		buf_put_text(out, inject->kind == INJECT_QUERY ? "query: " : "header: ");
		print_quoted(out, inject->name);
		if (inject->kind != INJECT_QUERY)
			buf_printf(out, ", kind: %s", inject_kind_names[inject->kind]);
	}
	buf_put_text(out, ", secret: ");
	print_quoted(out, inject->secret);
	if (inject->env) {
		buf_put_text(out, ", env: ");
		print_quoted(out, inject->env);
	}
	buf_put_char(out, '}');
}

static void put_rule_limits(struct buf *out, const struct net_limits *limits)
{
	const char *before = ", limits: {";

	for (size_t i = 0; limits && i < NET_LIMIT_COUNT; i++) {
		char text[NET_LIMIT_TEXT_SIZE];

		if (!limits->of[i].amount)
			continue;
		net_limit_to_text((enum net_limit)i, &limits->of[i], text);
		buf_printf(out, "%s%s: %s", before, net_limit_names[i], text);
		before = ", ";
	}
	if (str_equal(before, ", "))
		buf_put_char(out, '}');
}

void print_net_conditions(struct buf *out, const struct net_rule *rule)
{
	put_http(out, rule);
	if (rule->inject.kind != INJECT_NONE)
		put_inject(out, &rule->inject);
	if (rule->answer)
		put_answer(out, rule->answer);
	put_rule_limits(out, rule->limits);
}

void print_net_rule(struct buf *out, const struct net_rule *rule)
{
	buf_printf(out, "    - {%s: ", rule->host ? "host" : "cidr");
	print_quoted(out, rule->host ? rule->host : rule->cidr);
	for (size_t i = 0; i < rule->port_count; i++)
		buf_printf(out, "%s%u%s", i ? ", " : ", ports: [", rule->ports[i],
			   i + 1 == rule->port_count ? "]" : "");
	print_net_conditions(out, rule);
	put_strings(out, "except", rule->except);
	buf_put_char(out, '}');
	put_origin(out, &rule->origin);
}

static void put_cooldown(struct buf *out, const char *indent, const struct cooldown_rule *rule)
{
	char within[32], pause[32];

	if (!rule->denials)
		return;
	num_format_duration(rule->within_ms, within);
	num_format_duration(rule->pause_ms, pause);
	buf_printf(out, "%scooldown: {denials: %llu, within: %s, pause: %s}\n", indent,
		   (unsigned long long)rule->denials, within, pause);
}

void print_network_limits(struct buf *out, const struct policy *policy)
{
	struct heading heading = { .section = "network", .has_section = true };
	char text[NET_LIMIT_TEXT_SIZE];

	for (size_t i = 0; i < NET_LIMIT_COUNT; i++) {
		if (!policy->network.limits.of[i].amount)
			continue;
		head(&heading, "limits", out);
		net_limit_to_text((enum net_limit)i, &policy->network.limits.of[i], text);
		buf_printf(out, "    %s: %s\n", net_limit_names[i], text);
	}
	if (!policy->network.cooldown.denials)
		return;
	head(&heading, "limits", out);
	put_cooldown(out, "    ", &policy->network.cooldown);
}

static void put_publish(struct buf *out, const struct policy *policy)
{
	char host[PUBLISH_TEXT_SIZE];

	for (size_t i = 0; i < policy->network.publish_count; i++) {
		publish_host_format(&policy->network.publish[i], host);
		buf_printf(out, "%s    - {port: %u, host: \"%s\"%s}", i ? "" : "  publish:\n",
			   policy->network.publish[i].port, host,
			   policy->network.publish[i].is_on_demand ? ", on_demand: true" : "");
		put_origin(out, &policy->network.publish[i].origin);
	}
}

static void put_host_ports(struct buf *out, const struct policy *policy)
{
	for (size_t i = 0; i < policy->network.host_port_count; i++) {
		const struct host_port *port = &policy->network.host_ports[i];

		buf_printf(out, "%s    - %u%s%s", i ? "" : "  host_ports:\n", port->port, port->name ? "=" : "",
			   port->name ? port->name : "");
		put_origin(out, &port->origin);
	}
}

static void put_network(struct buf *out, const struct policy *policy)
{
	struct heading heading = { .section = "network", .has_section = true };

	buf_printf(out, "network:\n  default: %s", verdict_names[policy->network.default_verdict]);
	put_origin(out, &policy->network.default_origin);
	if (policy->network.mode == NETWORK_HOST)
		buf_put_text(out, "  host: true\n");
	for (int verdict = 0; verdict < VERDICT_COUNT; verdict++)
		for (size_t i = 0; i < policy->network.count; i++) {
			if ((int)policy->network.rules[i].verdict != verdict)
				continue;
			head(&heading, verdict_names[verdict], out);
			print_net_rule(out, &policy->network.rules[i]);
		}
	print_network_limits(out, policy);
	put_publish(out, policy);
	put_host_ports(out, policy);
}

void print_exec_rule(struct buf *out, const struct exec_rule *rule)
{
	buf_put_text(out, "    - {");
	if (rule->program) {
		buf_put_text(out, "program: ");
		print_quoted(out, rule->program);
	}
	/* put_strings begins with a comma, which YAML does not want first. */
	if (rule->program)
		put_strings(out, "argv", rule->argv);
	else
		for (size_t a = 0; rule->argv[a]; a++) {
			buf_put_text(out, a ? ", " : "argv: [");
			print_quoted(out, rule->argv[a]);
			buf_put_text(out, rule->argv[a + 1] ? "" : "]");
		}
	put_strings(out, "except", rule->except);
	buf_put_char(out, '}');
	put_origin(out, &rule->origin);
}

static void put_exec(struct buf *out, const struct policy *policy)
{
	struct heading heading = { .section = "exec", .has_section = true };

	char text[SCALAR_TEXT_SIZE];

	buf_put_text(out, "exec:\n");
	for (enum scalar_id id = SCALAR_EXEC_DEFAULT; id <= SCALAR_NAMESPACES; id++)
		buf_printf(out, "  %s: %s\n", scalar_rows[id].name, scalar_to_text(id, policy, text));
	for (int verdict = 0; verdict < VERDICT_COUNT; verdict++)
		for (size_t i = 0; i < policy->exec.count; i++) {
			const struct exec_rule *rule = &policy->exec.rules[i];

			if ((int)rule->verdict != verdict)
				continue;
			head(&heading, verdict_names[verdict], out);
			print_exec_rule(out, rule);
		}
}

void print_rates(struct buf *out, const struct policy *policy)
{
	char text[NET_LIMIT_TEXT_SIZE];

	for (size_t i = 0, shown = 0; i < RATE_KIND_COUNT; i++) {
		if (!policy->rates[i].amount)
			continue;
		rate_to_text(&policy->rates[i], text);
		buf_printf(out, "%s    %s: %s\n", shown++ ? "" : "  rate:\n", rate_kind_names[i], text);
	}
	put_cooldown(out, "  ", &policy->cooldown);
}

static void put_limits(struct buf *out, const struct policy *policy)
{
	char text[SCALAR_TEXT_SIZE];

	for (size_t i = 0; i < RESOURCE_COUNT; i++) {
		const struct scalar_row *row = &scalar_rows[SCALAR_RESOURCES + i];

		if (i == 0 || !str_equal(row->section, row[-1].section))
			buf_printf(out, "%s:\n", row->section);
		buf_printf(out, "  %s: %s", row->name, scalar_to_text(SCALAR_RESOURCES + i, policy, text));
		put_origin(out, &policy->limits[i].origin);
	}
	print_rates(out, policy);
}

static void put_env(struct buf *out, const struct policy *policy)
{
	if (policy->env.pass_count || policy->env.set_count)
		buf_put_text(out, "env:\n");
	for (size_t i = 0; i < policy->env.pass_count; i++) {
		buf_put_text(out, i ? "    - " : "  pass:\n    - ");
		print_quoted(out, policy->env.pass[i].pattern);
		put_origin(out, &policy->env.pass[i].origin);
	}
	for (size_t i = 0; i < policy->env.set_count; i++) {
		buf_printf(out, "%s%s: ", i ? "    " : "  set:\n    ", policy->env.set[i].name);
		print_quoted(out, policy->env.set[i].value);
		put_origin(out, &policy->env.set[i].origin);
	}
}

/* "name: value", all rows from first to last, with commas between. */
static void put_rows(struct buf *out, const struct policy *policy, enum scalar_id first, enum scalar_id last)
{
	char text[SCALAR_TEXT_SIZE];

	for (enum scalar_id id = first; id <= last; id++)
		buf_printf(out, "%s%s: %s", id > first ? ", " : "", scalar_rows[id].name,
			   scalar_to_text(id, policy, text));
}

/* "section: {…": the rows, and what else comes. */
static void begin_section(struct buf *out, const struct policy *policy, enum scalar_id first, enum scalar_id last)
{
	buf_printf(out, "%s: {", scalar_rows[first].section);
	put_rows(out, policy, first, last);
}

static void put_section(struct buf *out, const struct policy *policy, enum scalar_id first, enum scalar_id last)
{
	begin_section(out, policy, first, last);
	buf_put_text(out, "}\n");
}

static void put_ask(struct buf *out, const struct policy *policy)
{
	const struct ask_settings *ask = &policy->ask;

	begin_section(out, policy, SCALAR_ASK_TIMEOUT, SCALAR_ASK_DESKTOP);
	if (ask->webhook) {
		buf_put_text(out, ", webhook: {url: ");
		print_quoted(out, ask->webhook);
		if (ask->webhook_key)
			buf_printf(out, ", key: %s", ask->webhook_key);
		if (ask->webhook_key_file) {
			buf_put_text(out, ", key_file: ");
			print_quoted(out, ask->webhook_key_file);
		}
		buf_printf(out, ", may_answer: %s}", ask->webhook_answers ? "true" : "false");
	}
	buf_put_text(out, "}\n");
}

/* A comment: it says by how much the trust level is lowered, and what stands above extends none. */
static void put_trust(struct buf *out, const struct policy *policy)
{
	const struct trust_settings *trust = &policy->trust;

	if (!trust->is_given)
		return;
	buf_put_text(out, "# trust: {");
	if (trust->agent)
		buf_printf(out, "agent: \"%s\", ", trust->agent);
	put_rows(out, policy, SCALAR_TRUST_START, trust->raise != TRUST_NONE ? SCALAR_TRUST_RAISE : SCALAR_TRUST_FLOOR);
	if (trust->probation_sessions) {
		buf_put_text(out, ", probation: {");
		put_rows(out, policy, SCALAR_TRUST_SESSIONS, SCALAR_TRUST_AT);
		buf_put_char(out, '}');
	}
	buf_put_text(out, ", ");
	put_rows(out, policy, SCALAR_TRUST_ON_FALL, SCALAR_TRUST_HALF_LIFE);
	buf_put_text(out, "}  what it comes to now: atoll policy explain trust [AGENT]\n");
}

static void put_text(struct buf *out, const char *key, const char *text)
{
	if (!text)
		return;
	buf_printf(out, "%s: ", key);
	print_quoted(out, text);
	buf_put_text(out, ", ");
}

void print_external(struct buf *out, const struct external_verifier *verifier)
{
	char timeout[32], within[32];

	if (!external_is_given(verifier))
		return;
	buf_put_char(out, '{');
	for (const char *const *word = verifier->command; word && *word; word++) {
		buf_put_text(out, word == verifier->command ? "command: [" : ", ");
		print_quoted(out, *word);
	}
	buf_put_text(out, verifier->command ? "], " : "");
	put_text(out, "url", verifier->url);
	put_text(out, "model", verifier->model);
	put_text(out, "secret", verifier->secret);
	num_format_duration(verifier->timeout_ms, timeout);
	num_format_duration(verifier->breaker.within_ms, within);
	buf_printf(out, "when: %s, narrow: %s, timeout: %s, breaker: {denials: %llu, within: %s, action: %s}}",
		   verify_when_names[verifier->when], narrow_names[verifier->narrow], timeout,
		   (unsigned long long)verifier->breaker.denials, within,
		   breaker_action_names[verifier->breaker_action]);
}

/* One word where all confidences have the same. */
void print_verify(struct buf *out, const struct verify_settings *verify, const struct external_verifier *external)
{

	for (size_t row = 0; row < VERIFY_ROW_COUNT; row++) {
		const enum verify_action *of = verify->of[row];

		buf_printf(out, "%s%s: ", row ? ", " : "verify: {", verify_row_names[row]);
		if (of[VERIFY_POSSIBLE] == of[VERIFY_LIKELY] && of[VERIFY_LIKELY] == of[VERIFY_CERTAIN])
			buf_put_text(out, verify_action_names[of[VERIFY_CERTAIN]]);
		else
			buf_printf(out, "{possible: %s, likely: %s, certain: %s}",
				verify_action_names[of[VERIFY_POSSIBLE]],
				   verify_action_names[of[VERIFY_LIKELY]], verify_action_names[of[VERIFY_CERTAIN]]);
	}
	if (external_is_given(external)) {
		buf_put_text(out, ", external: ");
		print_external(out, external);
	}
	buf_put_text(out, "}\n");
}

void print_data(struct buf *out, const struct policy *policy)
{
	begin_section(out, policy, SCALAR_DATA_SECRETS, SCALAR_DATA_OUTGOING);
	put_canaries(out, policy);
	buf_put_text(out, "}\n");
}

void print_monitor(struct buf *out, const struct policy *policy)
{
	put_section(out, policy, SCALAR_MONITOR_BASELINE, SCALAR_MONITOR_CANARY);
}

static void put_agent_files(struct buf *out, const char *const *files, const char *before)
{
	for (; files && *files; files += 2) {
		buf_printf(out, "%s{path: ", before);
		print_quoted(out, files[0]);
		buf_put_text(out, ", content: ");
		print_quoted(out, files[1]);
		buf_put_char(out, '}');
		before = ", ";
	}
}

void print_agent(struct buf *out, const struct agent_settings *agent)
{
	const char *before = "";

	buf_put_text(out, "{command: [");
	for (const char *const *word = agent->command; word && *word; word++) {
		buf_put_text(out, word == agent->command ? "" : ", ");
		print_quoted(out, *word);
	}
	buf_put_text(out, "], state: [");
	for (const char *const *path = agent->directories; path && *path; path++) {
		cleanup_free char *directory = str_printf("%s/", *path);

		buf_put_text(out, before);
		print_quoted(out, directory ? directory : *path);
		before = ", ";
	}
	put_agent_files(out, agent->files, before);
	buf_put_text(out, "], settings: [");
	put_agent_files(out, agent->settings, "");
	buf_put_text(out, "]}");
}

static void put_agent(struct buf *out, const struct agent_settings *agent)
{
	if (!agent->command && !agent->directories && !agent->files && !agent->settings)
		return;
	buf_put_text(out, "agent: ");
	print_agent(out, agent);
	buf_put_char(out, '\n');
}

void print_policy(const struct policy *policy, struct buf *out)
{
	buf_put_text(out, "# The policy that is in force: ");
	buf_put_escaped(out, policy->name, strlen(policy->name), 0);
	buf_printf(out, ", trust level %s\n", trust_level_names[policy->level]);
	for (size_t i = 0; i < policy->unenforced_count; i++) {
		buf_printf(out, "# not enforceable yet, a run is refused: %s (", policy->unenforced[i].what);
		buf_put_escaped(out, policy->unenforced[i].origin.file,
				strlen(policy->unenforced[i].origin.file), 0);
		buf_printf(out, ":%u)\n", policy->unenforced[i].origin.line);
	}
	buf_put_text(out, "atoll: 1\n");
	put_files(out, policy);
	put_network(out, policy);
	put_exec(out, policy);
	put_limits(out, policy);
	put_env(out, policy);
	for (size_t i = 0; i < policy->device_count; i++) {
		buf_put_text(out, i ? "  - " : "devices:\n  - ");
		print_quoted(out, policy->devices[i].name);
		put_origin(out, &policy->devices[i].origin);
	}
	print_data(out, policy);
	put_section(out, policy, SCALAR_AUDIT_FILES, SCALAR_AUDIT_NETWORK);
	put_section(out, policy, SCALAR_STAGE_AUTO, SCALAR_STAGE_BACKEND);
	put_ask(out, policy);
	print_verify(out, &policy->verify, &policy->external);
	print_monitor(out, policy);
	put_trust(out, policy);
	put_agent(out, &policy->agent);
	for (unsigned i = 0, shown = 0; i < WALL_COUNT; i++)
		if (policy->degrade >> i & 1)
			buf_printf(out, "%s%s", shown++ ? ", " : "degrade: [", wall_names[i]);
	buf_put_text(out, policy->degrade ? "]\n" : "");
}
