/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "base/secret-name.h"
#include "base/str.h"
#include "os/memory.h"
#include "policy/decide-net.h"
#include "policy/glob.h"
#include "policy/order.h"
#include "policy/scalars.h"
#include "policy/snapshot-format.h"
#include "policy/snapshot/snapshot.h"

/*
 * Loading is on the way of every start, so it touches each byte once: a string is valid when its offset
 * lies in the pool behind a NUL (the pool ends with one), so no string is scanned. The view is one
 * anonymous mapping, populated in one go: page faults, not the work, would be what it costs. Half of a policy are its
 * hundreds of protected names, which no start looks at: their part of the view is filled when somebody does.
 */

struct loader {
	const uint8_t *bytes;
	const struct snapshot_header *header;
	const char *strings;
	uint32_t string_size;
	const char *const *vectors; /* the view's array, same indices as SECTION_VECTORS */
	uint32_t vector_count;
	uint8_t *arena;
	size_t arena_used;
	bool is_bad;
};

struct snapshot {
	struct policy policy;
	const struct snapshot_source *sources;
	size_t source_count;
	const void *bytes;
	size_t size;
	size_t mapping_size;
	struct hash hash;
	bool has_hash;
	struct late_rules protects;
	struct loader late; /* what reads them */
};

struct section_size {
	uint32_t record; /* in the snapshot */
	uint32_t view;	 /* in memory */
};

static const struct section_size section_sizes[SECTION_COUNT] = {
	[SECTION_STRINGS] = { 1, 0 },
	[SECTION_VECTORS] = { sizeof(uint32_t), sizeof(char *) },
	[SECTION_POLICY] = { sizeof(struct snapshot_scalars), 0 },
	[SECTION_LIMITS] = { sizeof(struct snapshot_limit), 0 },
	[SECTION_FILES] = { sizeof(struct snapshot_file), sizeof(struct file_rule) + 2 * sizeof(uint32_t) },
	[SECTION_FILE_PLAN] = { sizeof(struct snapshot_plan), sizeof(struct file_plan_entry) },
	[SECTION_FILE_ASKS] = { sizeof(struct snapshot_path), sizeof(struct path_rule) },
	[SECTION_PROTECTS] = { sizeof(struct snapshot_path), sizeof(struct path_rule) },
	[SECTION_NETWORK] = { sizeof(struct snapshot_net), sizeof(struct net_rule) + sizeof(uint32_t) },
	[SECTION_PORTS] = { sizeof(uint16_t), 0 },
	[SECTION_HTTP] = { sizeof(struct snapshot_http), sizeof(struct http_rule) },
	[SECTION_EXEC] = { sizeof(struct snapshot_exec), sizeof(struct exec_rule) },
	[SECTION_ENV_PASS] = { sizeof(struct snapshot_named), sizeof(struct env_pass) },
	[SECTION_ENV_SET] = { sizeof(struct snapshot_named), sizeof(struct env_set) },
	[SECTION_DEVICES] = { sizeof(struct snapshot_named), sizeof(struct device_rule) },
	[SECTION_UNENFORCED] = { sizeof(struct snapshot_named), sizeof(struct unenforced) },
	[SECTION_SOURCES] = { sizeof(struct snapshot_source_record), sizeof(struct snapshot_source) },
	[SECTION_ANSWERS] = { sizeof(struct snapshot_answer), sizeof(struct net_answer) },
	[SECTION_BODIES] = { 1, 0 },
	[SECTION_NET_LIMITS] = { sizeof(struct snapshot_net_limits), 0 },
	[SECTION_PUBLISH] = { sizeof(struct snapshot_publish), sizeof(struct publish_rule) },
	[SECTION_RATES] = { sizeof(struct net_amount), 0 },
	[SECTION_HOST_PORTS] = { sizeof(struct snapshot_host_port), sizeof(struct host_port) },
};

/* Header and section table; the bytes that the view needs in *ret_view. */
static int check_header(const void *bytes, size_t size, size_t *ret_view)
{
	const struct snapshot_header *header = bytes;
	size_t view = sizeof(struct snapshot) + 4 * SNAPSHOT_ALIGN;

	if (size > SNAPSHOT_SIZE_MAX)
		return -EFBIG;
	if (size < sizeof *header || (uintptr_t)bytes % SNAPSHOT_ALIGN)
		return -EBADMSG;
	if (memcmp(header->magic, SNAPSHOT_MAGIC, sizeof header->magic) != 0 ||
	    header->version != SNAPSHOT_VERSION || header->size != size)
		return -EBADMSG;
	for (size_t i = 0; i < SECTION_COUNT; i++) {
		uint64_t offset = header->sections[i].offset, count = header->sections[i].count;

		if (offset % SNAPSHOT_ALIGN || offset < sizeof *header ||
		    offset + count * section_sizes[i].record > size)
			return -EBADMSG;
		view += count * section_sizes[i].view + SNAPSHOT_ALIGN;
	}
	if (header->sections[SECTION_POLICY].count != 1 ||
	    header->sections[SECTION_LIMITS].count != RESOURCE_COUNT ||
	    header->sections[SECTION_NET_LIMITS].count < 1 ||
	    header->sections[SECTION_NET_LIMITS].count > NET_LIMITED_MAX + 1 ||
	    header->sections[SECTION_PUBLISH].count > NET_PUBLISH_MAX ||
	    header->sections[SECTION_HOST_PORTS].count > NET_HOST_PORTS_MAX ||
	    header->sections[SECTION_RATES].count != RATE_KIND_COUNT)
		return -EBADMSG;
	*ret_view = view;
	return 0;
}

static const void *records(const struct loader *loader, enum snapshot_section section, size_t *ret_count)
{
	*ret_count = loader->header->sections[section].count;
	return loader->bytes + loader->header->sections[section].offset;
}

static void *view_array(struct loader *loader, size_t count, size_t size)
{
	void *at = loader->arena + loader->arena_used;

	loader->arena_used += (count * size + SNAPSHOT_ALIGN - 1) & ~(size_t)(SNAPSHOT_ALIGN - 1);
	return at;
}

static const char *string_or_null(struct loader *loader, uint32_t offset)
{
	if (offset == SNAPSHOT_NULL)
		return NULL;
	if (offset >= loader->string_size || (offset && loader->strings[offset - 1])) {
		loader->is_bad = true;
		return "";
	}
	return loader->strings + offset;
}

static const char *string(struct loader *loader, uint32_t offset)
{
	const char *text = string_or_null(loader, offset);

	if (text)
		return text;
	loader->is_bad = true;
	return "";
}

static const char *const *vector(struct loader *loader, uint32_t first)
{
	if (first == SNAPSHOT_NULL)
		return NULL;
	/* The whole array ends with a NULL, so each vector in it ends. */
	if (first >= loader->vector_count) {
		loader->is_bad = true;
		return NULL;
	}
	return loader->vectors + first;
}

static struct rule_origin origin(struct loader *loader, const struct snapshot_origin *record)
{
	return (struct rule_origin){ string(loader, record->id), string(loader, record->file), record->line };
}

static uint32_t checked(struct loader *loader, uint32_t value, uint32_t end)
{
	if (value < end)
		return value;
	loader->is_bad = true;
	return 0;
}

/* An absolute path without "//", "." or ".." components is what lang/ writes; the first byte is what is
 * checked here. */
static const char *pattern(struct loader *loader, uint32_t offset, uint32_t flags)
{
	const char *text = string(loader, offset);

	if (text[0] != '/' || (flags & FILE_GLOB && glob_problem(text)))
		loader->is_bad = true;
	return text;
}

static void load_strings(struct loader *loader)
{
	size_t count;
	const uint32_t *in;
	const char **out;

	loader->strings = records(loader, SECTION_STRINGS, &count);
	loader->string_size = (uint32_t)count;
	if (!count || loader->strings[0] || loader->strings[count - 1]) {
		loader->is_bad = true;
		loader->string_size = 0;
	}
	in = records(loader, SECTION_VECTORS, &count);
	out = view_array(loader, count, sizeof *out);
	for (size_t i = 0; i < count; i++)
		out[i] = string_or_null(loader, in[i]);
	if (count && out[count - 1])
		loader->is_bad = true;
	loader->vectors = out;
	loader->vector_count = (uint32_t)count;
}

static struct cooldown_rule load_cooldown(struct loader *loader, const struct snapshot_cooldown *in)
{
	loader->is_bad |= in->denials > COOLDOWN_DENIALS_MAX;
	return (struct cooldown_rule){ in->denials, in->within_ms, in->pause_ms };
}

static void load_rates(struct loader *loader, struct policy *policy)
{
	size_t count;
	const struct net_amount *in = records(loader, SECTION_RATES, &count);

	for (size_t i = 0; i < RATE_KIND_COUNT; i++) {
		policy->rates[i] = in[i];
		loader->is_bad |= !in[i].amount != !in[i].period_ms;
	}
}

/* Each single value as its row says; what they mean together is looked at afterwards. */
static void load_rows(struct loader *loader, const struct snapshot_scalars *in, struct policy *policy)
{
	for (enum scalar_id id = 0; id < SCALAR_ROW_COUNT; id++) {
		const struct scalar_row *row = &scalar_rows[id];
		uint64_t value = 0;

		if (!row->stored)
			continue;
		/* Little-endian. A string is an offset of 32 bits, whatever the size of its pointer. */
		memcpy(&value, (const uint8_t *)in + row->stored,
		       row->unit != SCALAR_TEXT && row->size == sizeof(uint64_t) ? sizeof(uint64_t) : sizeof(uint32_t));
		if (row->unit == SCALAR_TEXT)
			value = (uintptr_t)string_or_null(loader, (uint32_t)value);
		else if (row->unit == SCALAR_SWITCH)
			value = checked(loader, (uint32_t)value, 2);
		else if (row->unit == SCALAR_CHOICE)
			value = checked(loader, (uint32_t)value, row->name_count);
		loader->is_bad |= row->unit == SCALAR_CHOICE && !row->names[value];
		scalar_set(id, policy, value);
	}
}

static void check_ask(struct loader *loader, const struct ask_settings *ask)
{
	loader->is_bad |= !ask->timeout_ms || ask->timeout_ms > ASK_TIMEOUT_MAX_MS ||
			  (ask->webhook && strlen(ask->webhook) > ASK_WEBHOOK_MAX) ||
			  (ask->webhook_key && !secret_name_is_valid(ask->webhook_key)) ||
			  (ask->webhook_key_file && ask->webhook_key_file[0] != '/') ||
			  (!ask->webhook && (ask->webhook_key || ask->webhook_key_file || ask->webhook_answers));
}

static void load_verify(struct loader *loader, const struct snapshot_scalars *in, struct verify_settings *verify)
{
	for (size_t i = 0; i < VERIFY_ROW_COUNT * VERIFY_SURENESS_COUNT; i++)
		verify->of[i / VERIFY_SURENESS_COUNT][i % VERIFY_SURENESS_COUNT] =
			checked(loader, in->verify[i], VERIFY_ACTION_COUNT);
}

static void check_monitor(struct loader *loader, const struct monitor_settings *monitor)
{
	loader->is_bad |= monitor->baseline &&
			  (monitor->sessions < MONITOR_SESSIONS_MIN || monitor->sessions > MONITOR_SESSIONS_MAX ||
			   monitor->learn < MONITOR_LEARN_MIN || monitor->learn > MONITOR_LEARN_MAX);
}

static void load_canaries(struct loader *loader, const struct snapshot_scalars *in, struct policy *policy)
{
	char normal[POLICY_CANARY_PATH_MAX + 1];
	size_t count = 0;

	policy->data.canaries = vector(loader, in->data.canaries);
	for (const char *const *name = policy->data.canaries; name && *name; name++)
		loader->is_bad |= !secret_name_is_valid(*name);
	policy->data.canary_files = vector(loader, in->data.canary_files);
	for (const char *const *path = policy->data.canary_files; path && *path; path++)
		loader->is_bad |= ++count > POLICY_CANARY_FILES_MAX ||
				  path_normalise(normal, sizeof normal, *path) < 0 || !str_equal(normal, *path) ||
				  !normal[1];
}

/* Paths, each with its content where has_content. */
static const char *const *load_agent_files(struct loader *loader, uint32_t first, bool has_content)
{
	const char *const *files = vector(loader, first);
	char normal[PATH_MAX];
	size_t count = 0;

	for (const char *const *at = files; at && *at; at += has_content ? 2 : 1) {
		if (++count > AGENT_FILES_MAX || path_normalise(normal, sizeof normal, *at) < 0 ||
		    !str_equal(normal, *at) || !normal[1] ||
		    (has_content && (!at[1] || strlen(at[1]) > AGENT_CONTENT_MAX))) {
			loader->is_bad = true;
			return NULL;
		}
	}
	return files;
}

static void load_agent(struct loader *loader, const struct snapshot_agent *in, struct agent_settings *agent)
{
	agent->command = vector(loader, in->command);
	agent->directories = load_agent_files(loader, in->directories, false);
	agent->files = load_agent_files(loader, in->files, true);
	agent->settings = load_agent_files(loader, in->settings, true);
	loader->is_bad |= agent->command && (!agent->command[0] || !agent->command[0][0]);
}

static void load_trust(struct loader *loader, const struct snapshot_scalars *in, struct trust_settings *trust)
{
	trust->is_given = checked(loader, in->trust.is_given, 2);
	trust->has_level = checked(loader, in->trust.has_level, 2);
	loader->is_bad |= (trust->agent && !trust_agent_is_valid(trust->agent)) || trust->floor > trust->start ||
			  trust->start > trust->ceiling || trust->probation_sessions > TRUST_SESSIONS_MAX ||
			  (trust->is_given && !trust->half_life_ms) || trust->half_life_ms > TRUST_HALF_LIFE_MAX_MS;
}

static void load_external(struct loader *loader, const struct snapshot_scalars *in, struct external_verifier *out)
{
	out->command = vector(loader, in->external.command);
	out->url = string_or_null(loader, in->external.url);
	out->model = string_or_null(loader, in->external.model);
	out->secret = string_or_null(loader, in->external.secret);
	out->when = checked(loader, in->external.when, VERIFY_WHEN_COUNT);
	out->narrow = checked(loader, in->external.narrow, NARROW_COUNT);
	out->timeout_ms = in->external_timeout_ms;
	out->breaker = load_cooldown(loader, &in->breaker);
	out->breaker_action = checked(loader, in->external.breaker_action, BREAKER_ACTION_COUNT);
	if (out->command && !out->command[0])
		out->command = NULL;
	if (external_is_given(out))
		loader->is_bad |= (out->command && (out->url || out->command[0][0] != '/')) ||
				  !out->url != !out->model ||
				  (out->url && strlen(out->url) > ASK_WEBHOOK_MAX) ||
				  (out->secret && !secret_name_is_valid(out->secret)) || !out->timeout_ms ||
				  out->timeout_ms > VERIFY_TIMEOUT_MAX_MS || !out->breaker.denials;
}

static void load_scalars(struct loader *loader, struct policy *policy)
{
	size_t count;
	const struct snapshot_scalars *in = records(loader, SECTION_POLICY, &count);
	const struct snapshot_limit *limits = records(loader, SECTION_LIMITS, &count);

	policy->name = string(loader, in->name);
	policy->project = string(loader, in->project);
	policy->home = string(loader, in->home);
	policy->level = checked(loader, in->level, TRUST_COUNT);
	policy->network.mode = checked(loader, in->network.mode, NETWORK_MODE_COUNT);
	load_rows(loader, in, policy);
	policy->network.default_origin = origin(loader, &in->network.default_origin);
	policy->exec.default_origin = origin(loader, &in->exec.default_origin);
	check_ask(loader, &policy->ask);
	load_verify(loader, in, &policy->verify);
	check_monitor(loader, &policy->monitor);
	load_canaries(loader, in, policy);
	load_trust(loader, in, &policy->trust);
	load_external(loader, in, &policy->external);
	load_agent(loader, &in->agent, &policy->agent);
	policy->degrade = checked(loader, in->degrade, 1u << WALL_COUNT);
	policy->network.cooldown = load_cooldown(loader, &in->network_cooldown);
	policy->cooldown = load_cooldown(loader, &in->cooldown);
	load_rates(loader, policy);
	policy->files.exact_count = in->exact.files;
	policy->network.exact_count = in->exact.network;
	policy->exec.exact_count = in->exact.exec;
	for (size_t i = 0; i < RESOURCE_COUNT; i++)
		policy->limits[i] =
			(struct resource_limit){ limits[i].value, origin(loader, &limits[i].origin) };
}

static void load_files(struct loader *loader, struct policy *policy)
{
	size_t count;
	const struct snapshot_file *in = records(loader, SECTION_FILES, &count);
	struct file_rule *out = view_array(loader, count, sizeof *out);
	uint32_t *parents = view_array(loader, count, sizeof *parents),
		 *lengths = view_array(loader, count, sizeof *lengths);

	for (size_t i = 0; i < count; i++) {
		uint32_t flags = checked(loader, in[i].flags, FILE_FLAGS_END);

		out[i] = (struct file_rule){
			.pattern = pattern(loader, in[i].pattern, flags),
			.class = checked(loader, in[i].class - 1, FILE_CLASS_COUNT - 1) +
				 1, /* none is FILE_HIDDEN */
			.flags = flags,
			.except = vector(loader, in[i].except),
			.origin = origin(loader, &in[i].origin),
		};
		/* decide.c looks at no depth of these. */
		loader->is_bad |= flags & FILE_GATED && (out[i].class != FILE_MASK || !(flags & FILE_GLOB));
		out[i].ending = flags & FILE_GLOB ? glob_ending(out[i].pattern) : 0;
	}
	policy->files.rules = out;
	policy->files.count = count;
	policy->files.parents = parents;
	if (policy->files.exact_count > count || loader->is_bad ||
	    file_parents_fill(parents, lengths, out, policy->files.exact_count,
			      loader->strings + loader->string_size) < 0)
		loader->is_bad = true;
}

static void load_plan(struct loader *loader, struct policy *policy)
{
	size_t count;
	const struct snapshot_plan *in = records(loader, SECTION_FILE_PLAN, &count);
	struct file_plan_entry *out = view_array(loader, count, sizeof *out);

	for (size_t i = 0; i < count; i++) {
		out[i] = (struct file_plan_entry){
			.path = pattern(loader, in[i].path, 0),
			.class = checked(loader, in[i].class - 1, FILE_CLASS_COUNT - 1) + 1,
			.flags = checked(loader, in[i].flags, FILE_FLAGS_END) & ~(uint32_t)FILE_GLOB,
			.rule = checked(loader, in[i].rule, (uint32_t)policy->files.count),
		};
		if (i && !loader->is_bad && path_compare(out[i - 1].path, out[i].path) >= 0)
			loader->is_bad = true;
	}
	policy->files.plan = out;
	policy->files.plan_count = count;
}

static const struct path_rule *load_paths(struct loader *loader, enum snapshot_section section,
					  size_t *ret_count)
{
	const struct snapshot_path *in = records(loader, section, ret_count);
	struct path_rule *out = view_array(loader, *ret_count, sizeof *out);

	for (size_t i = 0; i < *ret_count; i++) {
		uint32_t flags = checked(loader, in[i].flags, PATH_FLAGS_END);

		out[i] = (struct path_rule){
			.pattern = pattern(loader, in[i].pattern, flags),
			.flags = flags,
			.except = vector(loader, in[i].except),
			.origin = origin(loader, &in[i].origin),
			.when = string_or_null(loader, in[i].when),
		};
		out[i].ending = glob_ending(out[i].pattern);
	}
	return out;
}

/* A snapshot whose rules are wrong protects everything: too late to refuse it. */
static void read_protects(struct late_rules *rules)
{
	static const struct path_rule all = { .pattern = "/", .origin = { "snapshot.damaged", "", 0 },
					      .when = "the compiled policy is damaged" };
	struct snapshot *snapshot = (struct snapshot *)((char *)rules - offsetof(struct snapshot, protects));

	rules->rules = load_paths(&snapshot->late, SECTION_PROTECTS, &rules->count);
	rules->read = NULL;
	if (snapshot->late.is_bad) {
		rules->rules = &all;
		rules->count = 1;
	}
}

static const struct http_rule *load_http(struct loader *loader, size_t *ret_count)
{
	const struct snapshot_http *in = records(loader, SECTION_HTTP, ret_count);
	struct http_rule *out = view_array(loader, *ret_count, sizeof *out);

	for (size_t i = 0; i < *ret_count; i++)
		out[i] = (struct http_rule){
			vector(loader, in[i].methods),
			vector(loader, in[i].paths),
			origin(loader, &in[i].origin),
		};
	return out;
}

/* Names and values in turn. */
static const char *const *pairs(struct loader *loader, uint32_t first)
{
	const char *const *out = vector(loader, first);
	size_t count = 0;

	while (out && out[count])
		count++;
	loader->is_bad |= count % 2;
	return out;
}

/* A slice [first, first + count) of an array of total entries. */
static size_t slice(struct loader *loader, uint32_t first, uint32_t count, size_t total)
{
	if ((uint64_t)first + count <= total)
		return first;
	loader->is_bad = true;
	return 0;
}

static const struct net_answer *load_answers(struct loader *loader, size_t *ret_count)
{
	size_t total;
	const struct snapshot_answer *in = records(loader, SECTION_ANSWERS, ret_count);
	const uint8_t *bodies = records(loader, SECTION_BODIES, &total);
	struct net_answer *out = view_array(loader, *ret_count, sizeof *out);

	for (size_t i = 0; i < *ret_count; i++)
		out[i] = (struct net_answer){
			.status = 200 + checked(loader, in[i].status - 200, 400),
			.fields = pairs(loader, in[i].fields),
			.body = bodies + slice(loader, in[i].body_offset, in[i].body_size, total),
			.body_size = in[i].body_size,
			.body_file = string_or_null(loader, in[i].body_file),
		};
	return out;
}

/* Every rule that simulates has an answer, and no other has. */
static const struct net_answer *answer(struct loader *loader, const struct snapshot_net *rule,
				       const struct net_answer *answers, size_t count)
{
	if ((rule->verdict == VERDICT_SIMULATE) != (rule->answer != SNAPSHOT_NULL))
		loader->is_bad = true;
	if (rule->answer == SNAPSHOT_NULL)
		return NULL;
	if (rule->answer < count)
		return &answers[rule->answer];
	loader->is_bad = true;
	return NULL;
}

static struct inject load_inject(struct loader *loader, const struct snapshot_net *in)
{
	struct inject inject = {
		.kind = checked(loader, in->inject_kind, INJECT_KIND_COUNT),
		.name = string_or_null(loader, in->inject_name),
		.service = string_or_null(loader, in->inject_service),
		.region = string_or_null(loader, in->inject_region),
		.secret = string_or_null(loader, in->inject_secret),
		.env = string_or_null(loader, in->inject_env),
	};
	bool is_used = inject.kind != INJECT_NONE, is_aws = inject.kind == INJECT_AWS;

	if (is_used != (inject.secret != NULL) || (is_used && !is_aws) != (inject.name != NULL) ||
	    is_aws != (inject.service != NULL) || is_aws != (inject.region != NULL) || (inject.env && !is_used) ||
	    (inject.secret && !secret_name_is_valid(inject.secret)))
		loader->is_bad = true;
	return inject;
}

/* To one host, of which the port is known, and where it is allowed: nothing else may get a secret. */
static bool inject_is_bounded(const struct net_rule *rule)
{
	return rule->inject.kind == INJECT_NONE ||
	       (rule->verdict == VERDICT_ALLOW && rule->host && rule->host[0] != '*' && rule->port_count);
}

_Static_assert(sizeof(struct snapshot_net_limits) == sizeof(struct net_limits), "limits are used as they are stored");

/* All sets of limits, the session's first. A rate without its time would be a division by zero. */
static const struct net_limits *load_net_limits(struct loader *loader, struct policy *policy)
{
	size_t count;
	const struct net_limits *sets = records(loader, SECTION_NET_LIMITS, &count);

	for (size_t i = 0; i < count; i++)
		for (size_t kind = 0; kind < NET_LIMIT_COUNT; kind++)
			if (sets[i].of[kind].amount && !sets[i].of[kind].period_ms == net_limit_has_period[kind])
				loader->is_bad = true;
	if (sets->of[NET_LIMIT_HOSTS].amount > NET_HOSTS_MAX)
		loader->is_bad = true;
	policy->network.limits = sets[0];
	return sets;
}

/* The set of a rule. Each rule that has one takes the next, so that no set is shared and none is left. */
static const struct net_limits *take_limits(struct loader *loader, struct policy *policy,
					    const struct net_limits *sets, const struct snapshot_net *rule, size_t at)
{
	if (rule->limits == SNAPSHOT_NULL)
		return NULL;
	if (rule->limits != policy->network.limited_count + 1 ||
	    rule->limits >= loader->header->sections[SECTION_NET_LIMITS].count) {
		loader->is_bad = true;
		return NULL;
	}
	((uint32_t *)policy->network.limited)[policy->network.limited_count++] = (uint32_t)at;
	return sets + rule->limits;
}

static void load_network(struct loader *loader, struct policy *policy)
{
	size_t count, port_count, http_count, answer_count;
	const struct snapshot_net *in = records(loader, SECTION_NETWORK, &count);
	const uint16_t *ports = records(loader, SECTION_PORTS, &port_count);
	struct net_rule *out = view_array(loader, count, sizeof *out);
	const struct http_rule *http = load_http(loader, &http_count);
	const struct net_answer *answers = load_answers(loader, &answer_count);
	const struct net_limits *sets = load_net_limits(loader, policy);

	policy->network.limited = view_array(loader, count, sizeof *policy->network.limited);
	for (size_t i = 0; i < count; i++) {
		out[i] = (struct net_rule){
			.verdict = checked(loader, in[i].verdict, VERDICT_COUNT),
			.host = string_or_null(loader, in[i].host),
			.cidr = string_or_null(loader, in[i].cidr),
			.ports = ports + slice(loader, in[i].first_port, in[i].port_count, port_count),
			.port_count = in[i].port_count,
			.http = http + slice(loader, in[i].first_http, in[i].http_count, http_count),
			.http_count = in[i].http_count,
			.inject = load_inject(loader, &in[i]),
			.answer = answer(loader, &in[i], answers, answer_count),
			.except = vector(loader, in[i].except),
			.limits = take_limits(loader, policy, sets, &in[i], i),
			.origin = origin(loader, &in[i].origin),
		};
		if (!out[i].host == !out[i].cidr || !inject_is_bounded(&out[i]))
			loader->is_bad = true;
		if (i < policy->network.exact_count &&
		    (!out[i].host || loader->is_bad ||
		     (i && net_host_compare(out[i - 1].host, out[i].host) > 0)))
			loader->is_bad = true;
	}
	loader->is_bad |= policy->network.exact_count > count;
	policy->network.rules = out;
	policy->network.count = count;
}

static void load_publish(struct loader *loader, struct policy *policy)
{
	const struct snapshot_publish *in = records(loader, SECTION_PUBLISH, &policy->network.publish_count);
	struct publish_rule *out = view_array(loader, policy->network.publish_count, sizeof *out);

	for (size_t i = 0; i < policy->network.publish_count; i++)
		out[i] = (struct publish_rule){
			.port = (uint16_t)(checked(loader, in[i].port - 1, UINT16_MAX) + 1),
			.host_port = (uint16_t)checked(loader, in[i].host_port, UINT16_MAX + 1),
			.is_inet6 = checked(loader, in[i].is_inet6, 2),
			.is_on_demand = checked(loader, in[i].is_on_demand, 2),
			.origin = origin(loader, &in[i].origin),
		};
	policy->network.publish = out;
}

static void load_host_ports(struct loader *loader, struct policy *policy)
{
	const struct snapshot_host_port *in = records(loader, SECTION_HOST_PORTS, &policy->network.host_port_count);
	struct host_port *out = view_array(loader, policy->network.host_port_count, sizeof *out);

	for (size_t i = 0; i < policy->network.host_port_count; i++) {
		out[i] = (struct host_port){
			.port = (uint16_t)(checked(loader, in[i].port - 1, UINT16_MAX) + 1),
			.name = string_or_null(loader, in[i].name),
			.origin = origin(loader, &in[i].origin),
		};
		if (out[i].name && !net_host_is_valid(out[i].name))
			loader->is_bad = true;
	}
	policy->network.host_ports = out;
}

static void load_exec(struct loader *loader, struct policy *policy)
{
	size_t count;
	const struct snapshot_exec *in = records(loader, SECTION_EXEC, &count);
	struct exec_rule *out = view_array(loader, count, sizeof *out);

	for (size_t i = 0; i < count; i++) {
		uint32_t flags = checked(loader, in[i].program_flags, (FILE_GLOB | FILE_OPTIONAL) + 1);

		out[i] = (struct exec_rule){
			.verdict = checked(loader, in[i].verdict, VERDICT_COUNT),
			.program =
				in[i].program == SNAPSHOT_NULL ? NULL : pattern(loader, in[i].program, flags),
			.program_flags = flags,
			.argv = vector(loader, in[i].argv),
			.except = vector(loader, in[i].except),
			.origin = origin(loader, &in[i].origin),
		};
		if (!out[i].program && !out[i].argv)
			loader->is_bad = true;
		if (i < policy->exec.exact_count && (!out[i].program || flags & FILE_GLOB || out[i].argv ||
						     (i && strcmp(out[i - 1].program, out[i].program) > 0)))
			loader->is_bad = true;
		if (loader->is_bad)
			return;
	}
	loader->is_bad |= policy->exec.exact_count > count;
	policy->exec.rules = out;
	policy->exec.count = count;
}

static void load_env(struct loader *loader, struct policy *policy)
{
	const struct snapshot_named *in = records(loader, SECTION_ENV_PASS, &policy->env.pass_count);
	struct env_pass *pass = view_array(loader, policy->env.pass_count, sizeof *pass);
	struct env_set *set;

	for (size_t i = 0; i < policy->env.pass_count; i++)
		pass[i] = (struct env_pass){ string(loader, in[i].name), origin(loader, &in[i].origin) };
	policy->env.pass = pass;
	in = records(loader, SECTION_ENV_SET, &policy->env.set_count);
	set = view_array(loader, policy->env.set_count, sizeof *set);
	for (size_t i = 0; i < policy->env.set_count; i++) {
		set[i] = (struct env_set){ string(loader, in[i].name), string(loader, in[i].value),
					   origin(loader, &in[i].origin) };
		if (!set[i].name[0] || strchr(set[i].name, '='))
			loader->is_bad = true;
	}
	policy->env.set = set;
}

static void load_rest(struct loader *loader, struct policy *policy)
{
	const struct snapshot_named *in = records(loader, SECTION_DEVICES, &policy->device_count);
	struct device_rule *devices = view_array(loader, policy->device_count, sizeof *devices);
	struct unenforced *unenforced;

	for (size_t i = 0; i < policy->device_count; i++) {
		devices[i] =
			(struct device_rule){ string(loader, in[i].name), origin(loader, &in[i].origin) };
		if (!devices[i].name[0] || devices[i].name[0] == '/' || strstr(devices[i].name, ".."))
			loader->is_bad = true;
	}
	policy->devices = devices;
	in = records(loader, SECTION_UNENFORCED, &policy->unenforced_count);
	unenforced = view_array(loader, policy->unenforced_count, sizeof *unenforced);
	for (size_t i = 0; i < policy->unenforced_count; i++)
		unenforced[i] =
			(struct unenforced){ string(loader, in[i].name), origin(loader, &in[i].origin) };
	policy->unenforced = unenforced;
}

static void load_sources(struct loader *loader, struct snapshot *snapshot)
{
	const struct snapshot_source_record *in = records(loader, SECTION_SOURCES, &snapshot->source_count);
	struct snapshot_source *out = view_array(loader, snapshot->source_count, sizeof *out);

	for (size_t i = 0; i < snapshot->source_count; i++)
		out[i] = (struct snapshot_source){
			.path = pattern(loader, in[i].path, 0),
			.exists = (uint8_t)checked(loader, in[i].exists, 2),
			.device = in[i].device,
			.inode = in[i].inode,
			.size = in[i].size,
			.mtime_ns = in[i].mtime_ns,
			.ctime_ns = in[i].ctime_ns,
		};
	snapshot->sources = out;
}

int snapshot_load(struct snapshot **ret_snapshot, const void *bytes, size_t size)
{
	struct loader loader = { .bytes = bytes, .header = bytes };
	struct snapshot *snapshot;
	size_t view, late;
	int r = check_header(bytes, size, &view);

	if (r < 0)
		return r;
	loader.arena = mmap(NULL, view, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (loader.arena == MAP_FAILED)
		return -ENOMEM;
	late = loader.header->sections[SECTION_PROTECTS].count * section_sizes[SECTION_PROTECTS].view;
	memory_take(loader.arena, view - late);
	snapshot = view_array(&loader, 1, sizeof *snapshot);
	snapshot->mapping_size = view;
	snapshot->bytes = bytes;
	snapshot->size = size;
	load_strings(&loader);
	load_scalars(&loader, &snapshot->policy);
	load_files(&loader, &snapshot->policy);
	load_plan(&loader, &snapshot->policy);
	snapshot->policy.files.asks = load_paths(&loader, SECTION_FILE_ASKS, &snapshot->policy.files.ask_count);
	load_network(&loader, &snapshot->policy);
	load_publish(&loader, &snapshot->policy);
	load_host_ports(&loader, &snapshot->policy);
	load_exec(&loader, &snapshot->policy);
	load_env(&loader, &snapshot->policy);
	load_rest(&loader, &snapshot->policy);
	load_sources(&loader, snapshot);
	if (loader.is_bad) {
		snapshot_free(snapshot);
		return -EBADMSG;
	}
	snapshot->late = loader;
	snapshot->protects = (struct late_rules){ .read = read_protects };
	snapshot->policy.files.late_protects = &snapshot->protects;
	*ret_snapshot = snapshot;
	return 0;
}

void snapshot_free(struct snapshot *snapshot)
{
	if (snapshot)
		munmap(snapshot, snapshot->mapping_size);
}

const struct policy *snapshot_policy(const struct snapshot *snapshot)
{
	return &snapshot->policy;
}

const struct snapshot_source *snapshot_sources(const struct snapshot *snapshot, size_t *ret_count)
{
	*ret_count = snapshot->source_count;
	return snapshot->sources;
}

void snapshot_set_hash(struct snapshot *snapshot, const struct hash *hash)
{
	snapshot->hash = *hash;
	snapshot->has_hash = true;
}

void snapshot_hash(const struct snapshot *snapshot, struct hash *ret_hash)
{
	if (snapshot->has_hash)
		*ret_hash = snapshot->hash;
	else
		hash_bytes(ret_hash, snapshot->bytes, snapshot->size);
}
