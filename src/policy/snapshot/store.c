/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "policy/scalars.h"
#include "policy/snapshot-format.h"
#include "policy/snapshot/snapshot.h"

/* Strings are stored once: an open-addressing table of their offsets. */
struct writer {
	struct buf strings;
	struct buf sections[SECTION_COUNT]; /* SECTION_STRINGS unused */
	uint32_t *table;
	size_t table_size, table_used;
	int error;
};

static uint64_t hash_text(const char *text)
{
	uint64_t hash = 14695981039346656037ULL; /* FNV-1a */

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 1099511628211ULL;
	return hash;
}

static uint32_t *find_slot(uint32_t *table, size_t size, const char *strings, const char *text)
{
	size_t at = hash_text(text) & (size - 1);

	while (table[at] && strcmp(strings + table[at], text) != 0)
		at = (at + 1) & (size - 1);
	return &table[at];
}

static int grow_table(struct writer *writer)
{
	size_t size = writer->table_size ? writer->table_size * 2 : 1024;
	uint32_t *table;

	if (writer->table_used * 2 < writer->table_size)
		return 0;
	table = calloc(size, sizeof *table);
	if (!table)
		return -ENOMEM;
	for (size_t i = 0; i < writer->table_size; i++) {
		const char *strings = (const char *)writer->strings.bytes;

		if (writer->table[i])
			*find_slot(table, size, strings, strings + writer->table[i]) = writer->table[i];
	}
	free(writer->table);
	writer->table = table;
	writer->table_size = size;
	return 0;
}

static uint32_t put_string(struct writer *writer, const char *text)
{
	uint32_t *slot;
	int r;

	if (!text)
		return SNAPSHOT_NULL;
	if (!*text || writer->error)
		return 0;
	r = grow_table(writer);
	if (r < 0) {
		writer->error = r;
		return 0;
	}
	slot = find_slot(writer->table, writer->table_size, (const char *)writer->strings.bytes, text);
	if (!*slot) {
		uint32_t offset = (uint32_t)writer->strings.size;

		buf_put(&writer->strings, text, strlen(text) + 1);
		writer->error = buf_error(&writer->strings);
		if (writer->error)
			return 0;
		*slot = offset;
		writer->table_used++;
	}
	return *slot;
}

static uint32_t put_vector(struct writer *writer, const char *const *strings)
{
	struct buf *out = &writer->sections[SECTION_VECTORS];
	uint32_t first = (uint32_t)(out->size / sizeof(uint32_t)), end = SNAPSHOT_NULL;

	if (!strings || !*strings)
		return SNAPSHOT_NULL;
	for (; *strings; strings++) {
		uint32_t string = put_string(writer, *strings);

		buf_put(out, &string, sizeof string);
	}
	buf_put(out, &end, sizeof end);
	return first;
}

static struct snapshot_origin put_origin(struct writer *writer, const struct rule_origin *origin)
{
	return (struct snapshot_origin){
		put_string(writer, origin->id ? origin->id : ""),
		put_string(writer, origin->file ? origin->file : ""),
		origin->line,
	};
}

#define PUT_RECORD(writer, section, ...)                                                                     \
	do {                                                                                                 \
		__typeof__(__VA_ARGS__) record_ = __VA_ARGS__;                                               \
		buf_put(&(writer)->sections[section], &record_, sizeof record_);                             \
	} while (0)

static struct snapshot_cooldown cooldown_record(const struct cooldown_rule *rule)
{
	return (struct snapshot_cooldown){ rule->denials, rule->within_ms, rule->pause_ms };
}

static void fill_rows(struct writer *writer, const struct policy *policy, struct snapshot_scalars *record)
{
	for (enum scalar_id id = 0; id < SCALAR_ROW_COUNT; id++) {
		const struct scalar_row *row = &scalar_rows[id];
		uint64_t value = scalar_get(id, policy);

		if (row->unit == SCALAR_TEXT)
			value = put_string(writer, (const char *)(uintptr_t)value);
		if (row->stored)
			memcpy((uint8_t *)record + row->stored, &value,
			       row->unit != SCALAR_TEXT && row->size == sizeof value ? sizeof value : sizeof(uint32_t));
	}
}

static void put_scalars(struct writer *writer, const struct policy *policy)
{
	struct snapshot_scalars record = {
		.name = put_string(writer, policy->name ? policy->name : ""),
		.project = put_string(writer, policy->project ? policy->project : ""),
		.home = put_string(writer, policy->home ? policy->home : ""),
		.level = policy->level,
		.exact.files = (uint32_t)policy->files.exact_count,
		.exact.network = (uint32_t)policy->network.exact_count,
		.exact.exec = (uint32_t)policy->exec.exact_count,
		.network.mode = policy->network.mode,
		.network.default_origin = put_origin(writer, &policy->network.default_origin),
		.exec.default_origin = put_origin(writer, &policy->exec.default_origin),
		.data.canaries = put_vector(writer, policy->data.canaries),
		.data.canary_files = put_vector(writer, policy->data.canary_files),
		.agent.command = put_vector(writer, policy->agent.command),
		.agent.directories = put_vector(writer, policy->agent.directories),
		.agent.files = put_vector(writer, policy->agent.files),
		.agent.settings = put_vector(writer, policy->agent.settings),
		.degrade = policy->degrade,
		.trust.is_given = policy->trust.is_given,
		.trust.has_level = policy->trust.has_level,
		.external.when = policy->external.when,
		.external.narrow = policy->external.narrow,
		.external_timeout_ms = policy->external.timeout_ms,
		.external.breaker_action = policy->external.breaker_action,
		.breaker = cooldown_record(&policy->external.breaker),
		.network_cooldown = cooldown_record(&policy->network.cooldown),
		.cooldown = cooldown_record(&policy->cooldown),
	};

	for (size_t i = 0; i < VERIFY_ROW_COUNT * VERIFY_SURENESS_COUNT; i++)
		record.verify[i] = policy->verify.of[i / VERIFY_SURENESS_COUNT][i % VERIFY_SURENESS_COUNT];
	/* Strings are stored in the order in which they come. */
	fill_rows(writer, policy, &record);
	record.external.command = put_vector(writer, policy->external.command);
	record.external.url = put_string(writer, policy->external.url);
	record.external.model = put_string(writer, policy->external.model);
	record.external.secret = put_string(writer, policy->external.secret);
	PUT_RECORD(writer, SECTION_POLICY, record);
	for (size_t i = 0; i < RESOURCE_COUNT; i++)
		PUT_RECORD(writer, SECTION_LIMITS,
			   (struct snapshot_limit){
				   .value = policy->limits[i].value,
				   .origin = put_origin(writer, &policy->limits[i].origin),
			   });
	for (size_t i = 0; i < RATE_KIND_COUNT; i++)
		PUT_RECORD(writer, SECTION_RATES, policy->rates[i]);
}

static void put_paths(struct writer *writer, enum snapshot_section section, const struct path_rule *rules,
		      size_t count)
{
	for (size_t i = 0; i < count; i++)
		PUT_RECORD(writer, section,
			   (struct snapshot_path){
				   put_string(writer, rules[i].pattern),
				   rules[i].flags,
				   put_vector(writer, rules[i].except),
				   put_origin(writer, &rules[i].origin),
				   put_string(writer, rules[i].when),
			   });
}

static void put_files(struct writer *writer, const struct policy *policy)
{
	size_t protect_count;
	const struct path_rule *protects = policy_protects(policy, &protect_count);

	for (size_t i = 0; i < policy->files.count; i++) {
		const struct file_rule *rule = &policy->files.rules[i];

		PUT_RECORD(writer, SECTION_FILES,
			   (struct snapshot_file){
				   put_string(writer, rule->pattern),
				   rule->class,
				   rule->flags,
				   put_vector(writer, rule->except),
				   put_origin(writer, &rule->origin),
			   });
	}
	for (size_t i = 0; i < policy->files.plan_count; i++) {
		const struct file_plan_entry *entry = &policy->files.plan[i];

		PUT_RECORD(writer, SECTION_FILE_PLAN,
			   (struct snapshot_plan){
				   put_string(writer, entry->path),
				   entry->class,
				   entry->flags,
				   entry->rule,
			   });
	}
	put_paths(writer, SECTION_FILE_ASKS, policy->files.asks, policy->files.ask_count);
	put_paths(writer, SECTION_PROTECTS, protects, protect_count);
}

static uint32_t put_answer(struct writer *writer, const struct net_answer *answer)
{
	struct buf *out = &writer->sections[SECTION_ANSWERS], *bodies = &writer->sections[SECTION_BODIES];
	uint32_t index = (uint32_t)(out->size / sizeof(struct snapshot_answer));

	if (!answer)
		return SNAPSHOT_NULL;
	PUT_RECORD(writer, SECTION_ANSWERS,
		   (struct snapshot_answer){
			   .status = answer->status,
			   .fields = put_vector(writer, answer->fields),
			   .body_offset = (uint32_t)bodies->size,
			   .body_size = (uint32_t)answer->body_size,
			   .body_file = put_string(writer, answer->body_file),
		   });
	buf_put(bodies, answer->body, answer->body_size);
	return index;
}

/* The number of the set, the session's being 0. */
static uint32_t put_net_limits(struct writer *writer, const struct net_limits *limits)
{
	struct buf *out = &writer->sections[SECTION_NET_LIMITS];
	uint32_t index = (uint32_t)(out->size / sizeof(struct snapshot_net_limits));

	if (!limits)
		return SNAPSHOT_NULL;
	buf_put(out, limits, sizeof *limits);
	return index;
}

static void put_network(struct writer *writer, const struct policy *policy)
{
	(void)put_net_limits(writer, &policy->network.limits);
	for (size_t i = 0; i < policy->network.count; i++) {
		const struct net_rule *rule = &policy->network.rules[i];
		struct buf *ports = &writer->sections[SECTION_PORTS], *http = &writer->sections[SECTION_HTTP];

		PUT_RECORD(writer, SECTION_NETWORK,
			   (struct snapshot_net){
				   .verdict = rule->verdict,
				   .host = put_string(writer, rule->host),
				   .cidr = put_string(writer, rule->cidr),
				   .first_port = (uint32_t)(ports->size / sizeof(uint16_t)),
				   .port_count = (uint32_t)rule->port_count,
				   .first_http = (uint32_t)(http->size / sizeof(struct snapshot_http)),
				   .http_count = (uint32_t)rule->http_count,
				   .inject_kind = rule->inject.kind,
				   .inject_name = put_string(writer, rule->inject.name),
				   .inject_service = put_string(writer, rule->inject.service),
				   .inject_region = put_string(writer, rule->inject.region),
				   .inject_secret = put_string(writer, rule->inject.secret),
				   .inject_env = put_string(writer, rule->inject.env),
				   .except = put_vector(writer, rule->except),
				   .answer = put_answer(writer, rule->answer),
				   .limits = put_net_limits(writer, rule->limits),
				   .origin = put_origin(writer, &rule->origin),
			   });
		buf_put(ports, rule->ports, rule->port_count * sizeof *rule->ports);
		for (size_t h = 0; h < rule->http_count; h++)
			PUT_RECORD(writer, SECTION_HTTP,
				   (struct snapshot_http){
					   put_vector(writer, rule->http[h].methods),
					   put_vector(writer, rule->http[h].paths),
					   put_origin(writer, &rule->http[h].origin),
				   });
	}
}

static void put_publish(struct writer *writer, const struct policy *policy)
{
	for (size_t i = 0; i < policy->network.publish_count; i++)
		PUT_RECORD(writer, SECTION_PUBLISH,
			   (struct snapshot_publish){
				   policy->network.publish[i].port,
				   policy->network.publish[i].host_port,
				   policy->network.publish[i].is_inet6,
				   policy->network.publish[i].is_on_demand,
				   put_origin(writer, &policy->network.publish[i].origin),
			   });
}

static void put_host_ports(struct writer *writer, const struct policy *policy)
{
	for (size_t i = 0; i < policy->network.host_port_count; i++)
		PUT_RECORD(writer, SECTION_HOST_PORTS,
			   (struct snapshot_host_port){
				   policy->network.host_ports[i].port,
				   put_string(writer, policy->network.host_ports[i].name),
				   put_origin(writer, &policy->network.host_ports[i].origin),
			   });
}

static void put_named(struct writer *writer, enum snapshot_section section, const char *name,
		      const char *value, const struct rule_origin *origin)
{
	PUT_RECORD(writer, section,
		   (struct snapshot_named){
			   put_string(writer, name),
			   put_string(writer, value),
			   put_origin(writer, origin),
		   });
}

static void put_rest(struct writer *writer, const struct policy *policy)
{
	for (size_t i = 0; i < policy->exec.count; i++)
		PUT_RECORD(writer, SECTION_EXEC,
			   (struct snapshot_exec){
				   policy->exec.rules[i].verdict,
				   put_string(writer, policy->exec.rules[i].program),
				   policy->exec.rules[i].program_flags,
				   put_vector(writer, policy->exec.rules[i].argv),
				   put_vector(writer, policy->exec.rules[i].except),
				   put_origin(writer, &policy->exec.rules[i].origin),
			   });
	for (size_t i = 0; i < policy->env.pass_count; i++)
		put_named(writer, SECTION_ENV_PASS, policy->env.pass[i].pattern, NULL,
			  &policy->env.pass[i].origin);
	for (size_t i = 0; i < policy->env.set_count; i++)
		put_named(writer, SECTION_ENV_SET, policy->env.set[i].name, policy->env.set[i].value,
			  &policy->env.set[i].origin);
	for (size_t i = 0; i < policy->device_count; i++)
		put_named(writer, SECTION_DEVICES, policy->devices[i].name, NULL, &policy->devices[i].origin);
	for (size_t i = 0; i < policy->unenforced_count; i++)
		put_named(writer, SECTION_UNENFORCED, policy->unenforced[i].what, NULL,
			  &policy->unenforced[i].origin);
}

static void put_sources(struct writer *writer, const struct snapshot_source *sources, size_t count)
{
	for (size_t i = 0; i < count; i++)
		PUT_RECORD(writer, SECTION_SOURCES,
			   (struct snapshot_source_record){
				   .device = sources[i].device,
				   .inode = sources[i].inode,
				   .size = sources[i].size,
				   .mtime_ns = sources[i].mtime_ns,
				   .ctime_ns = sources[i].ctime_ns,
				   .path = put_string(writer, sources[i].path),
				   .exists = sources[i].exists != 0,
			   });
}

static const size_t record_sizes[SECTION_COUNT] = {
	[SECTION_STRINGS] = 1,
	[SECTION_VECTORS] = sizeof(uint32_t),
	[SECTION_POLICY] = sizeof(struct snapshot_scalars),
	[SECTION_LIMITS] = sizeof(struct snapshot_limit),
	[SECTION_FILES] = sizeof(struct snapshot_file),
	[SECTION_FILE_PLAN] = sizeof(struct snapshot_plan),
	[SECTION_FILE_ASKS] = sizeof(struct snapshot_path),
	[SECTION_PROTECTS] = sizeof(struct snapshot_path),
	[SECTION_NETWORK] = sizeof(struct snapshot_net),
	[SECTION_PORTS] = sizeof(uint16_t),
	[SECTION_HTTP] = sizeof(struct snapshot_http),
	[SECTION_EXEC] = sizeof(struct snapshot_exec),
	[SECTION_ENV_PASS] = sizeof(struct snapshot_named),
	[SECTION_ENV_SET] = sizeof(struct snapshot_named),
	[SECTION_DEVICES] = sizeof(struct snapshot_named),
	[SECTION_UNENFORCED] = sizeof(struct snapshot_named),
	[SECTION_SOURCES] = sizeof(struct snapshot_source_record),
	[SECTION_ANSWERS] = sizeof(struct snapshot_answer),
	[SECTION_BODIES] = 1,
	[SECTION_NET_LIMITS] = sizeof(struct snapshot_net_limits),
	[SECTION_PUBLISH] = sizeof(struct snapshot_publish),
	[SECTION_RATES] = sizeof(struct net_amount),
	[SECTION_HOST_PORTS] = sizeof(struct snapshot_host_port),
};

static int assemble(struct writer *writer, struct buf *out)
{
	struct snapshot_header header = { .magic = SNAPSHOT_MAGIC, .version = SNAPSHOT_VERSION };
	static const uint8_t padding[SNAPSHOT_ALIGN];
	size_t at = sizeof header, end = sizeof header;

	for (size_t i = 0; i < SECTION_COUNT; i++) {
		const struct buf *section = i == SECTION_STRINGS ? &writer->strings : &writer->sections[i];

		if (section->error)
			return section->error;
		at = (at + SNAPSHOT_ALIGN - 1) & ~(size_t)(SNAPSHOT_ALIGN - 1);
		header.sections[i].offset = (uint32_t)at;
		header.sections[i].count = (uint32_t)(section->size / record_sizes[i]);
		at += section->size;
		if (at > SNAPSHOT_SIZE_MAX)
			return -ENOBUFS;
	}
	header.size = (uint32_t)at;
	buf_put(out, &header, sizeof header);
	for (size_t i = 0; i < SECTION_COUNT; i++) {
		const struct buf *section = i == SECTION_STRINGS ? &writer->strings : &writer->sections[i];

		/* Sections are aligned, whatever the one before it was. */
		buf_put(out, padding, header.sections[i].offset - end);
		buf_put(out, section->bytes, section->size);
		end = header.sections[i].offset + section->size;
	}
	return buf_error(out);
}

int snapshot_store(struct buf *out, const struct policy *policy, const struct snapshot_source *sources,
		   size_t source_count)
{
	struct writer writer = { 0 };
	int r;

	buf_init(&writer.strings, SNAPSHOT_SIZE_MAX);
	for (size_t i = 0; i < SECTION_COUNT; i++)
		buf_init(&writer.sections[i], SNAPSHOT_SIZE_MAX);
	/* Offset 0 is "": every string, also the first, stands behind a NUL, which the loader checks. */
	buf_put_char(&writer.strings, 0);
	put_scalars(&writer, policy);
	put_files(&writer, policy);
	put_network(&writer, policy);
	put_publish(&writer, policy);
	put_host_ports(&writer, policy);
	put_rest(&writer, policy);
	put_sources(&writer, sources, source_count);
	r = writer.error ? writer.error : assemble(&writer, out);
	buf_done(&writer.strings);
	for (size_t i = 0; i < SECTION_COUNT; i++)
		buf_done(&writer.sections[i]);
	free(writer.table);
	return r;
}
