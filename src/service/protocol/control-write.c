/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "service/protocol/control.h"
#include "service/protocol/time.h"

/* How a field of a reply becomes a member. */
enum member_kind {
	MEMBER_TEXT,   /* key NULL: the text in "constant" */
	MEMBER_NEEDED, /* the same, and "" where it is missing */
	MEMBER_NUMBER,
	MEMBER_GIVEN,  /* the same, where there is one */
	MEMBER_TIME,
	MEMBER_UNIX,
	MEMBER_BOOL,
	MEMBER_THOUSANDTHS,
	MEMBER_STRINGS,
	MEMBER_PAIRS,
	MEMBER_MOUNTS,
	MEMBER_LINE,
	MEMBER_LIFECYCLE,
	MEMBER_NETWORK,
	MEMBER_NUMBERED, /* a truth: false where it is missing */
	MEMBER_REASON,
};

enum { MS_PER_S = 1000, LINE_MAX_BYTES = 64 << 10 };

struct member {
	const char *name; /* NULL ends a list */
	enum member_kind kind;
	const char *key, *constant;
};

#define IDENTITY                                                                                                     \
	{ "sandboxID", MEMBER_TEXT, "sandbox" }, { "templateID", MEMBER_NEEDED, "template" },                        \
		{ "alias", MEMBER_TEXT, "alias" }, { "clientID", MEMBER_TEXT, NULL, "atoll" },                       \
	{                                                                                                            \
		"envdVersion", MEMBER_TEXT, NULL, CONTROL_ENVD_VERSION                                               \
	}
#define TOKENS                                                                                                       \
	{ "envdAccessToken", MEMBER_TEXT, "token" }, { "trafficAccessToken", MEMBER_TEXT, "traffic_token" },         \
	{                                                                                                            \
		"domain", MEMBER_TEXT, "domain"                                                                      \
	}
#define STATE                                                                                                        \
	{ "startedAt", MEMBER_TIME, "started_ms" }, { "endAt", MEMBER_TIME, "end_ms" },                              \
		{ "state", MEMBER_TEXT, "state" }, { "cpuCount", MEMBER_NUMBER, "cpu_count" },                       \
		{ "memoryMB", MEMBER_NUMBER, "memory_mb" }, { "diskSizeMB", MEMBER_NUMBER, "disk_mb" },              \
		{ "metadata", MEMBER_PAIRS, "metadata" },                                                            \
	{                                                                                                            \
		"volumeMounts", MEMBER_MOUNTS, "volumes"                                                             \
	}

static const struct member sandbox_members[] = { IDENTITY, TOKENS, { NULL } };
static const struct member detail_members[] = { IDENTITY,
						{ "envdAccessToken", MEMBER_TEXT, "token" },
						{ "domain", MEMBER_TEXT, "domain" },
						STATE,
						{ "allowInternetAccess", MEMBER_BOOL, "internet" },
						{ "network", MEMBER_NETWORK, NULL },
						{ "lifecycle", MEMBER_LIFECYCLE, NULL },
						{ NULL } };
static const struct member listed_members[] = { IDENTITY, STATE, { NULL } };
static const struct member snapshot_members[] = { { "snapshotID", MEMBER_NEEDED, "snapshot" },
						  { "names", MEMBER_STRINGS, "names" },
						  { "createdAt", MEMBER_TIME, "created_ms" },
						  { "sandboxID", MEMBER_TEXT, "sandbox" },
						  { NULL } };
static const struct member template_members[] = { { "templateID", MEMBER_NEEDED, "template" },
						  { "buildID", MEMBER_NEEDED, "template" },
						  { "aliases", MEMBER_STRINGS, "names" },
						  { "names", MEMBER_STRINGS, "names" },
						  { "createdAt", MEMBER_TIME, "created_ms" },
						  { "updatedAt", MEMBER_TIME, "created_ms" },
						  { "cpuCount", MEMBER_NUMBER, "cpu_count" },
						  { "memoryMB", MEMBER_NUMBER, "memory_mb" },
						  { "diskSizeMB", MEMBER_NUMBER, "disk_mb" },
						  { "envdVersion", MEMBER_TEXT, NULL, CONTROL_ENVD_VERSION },
						  { NULL } };
static const struct member metric_members[] = {
	{ "timestamp", MEMBER_TIME, "time_ms" },      { "timestampUnix", MEMBER_UNIX, "time_ms" },
	{ "cpuCount", MEMBER_NUMBER, "cpu_count" },   { "cpuUsedPct", MEMBER_THOUSANDTHS, "cpu_used_milli" },
	{ "memUsed", MEMBER_NUMBER, "mem_used" },     { "memTotal", MEMBER_NUMBER, "mem_total" },
	{ "memCache", MEMBER_NUMBER, "mem_cache" },   { "diskUsed", MEMBER_NUMBER, "disk_used" },
	{ "diskTotal", MEMBER_NUMBER, "disk_total" }, { NULL }
};
static const struct member log_members[] = { { "timestamp", MEMBER_TIME, "time_ms" },
					     { "level", MEMBER_NEEDED, "level" },
					     { "message", MEMBER_NEEDED, "message" },
					     { "fields", MEMBER_PAIRS, "fields" },
					     { NULL } };
static const struct member line_members[] = { { "timestamp", MEMBER_TIME, "time_ms" },
					      { "line", MEMBER_LINE, "message" },
					      { NULL } };
static const struct member team_members[] = { { "teamID", MEMBER_NEEDED, "name" },
					      { "name", MEMBER_NEEDED, "name" },
					      { "apiKey", MEMBER_TEXT, NULL, "" },
					      { "role", MEMBER_TEXT, "role" },
					      { NULL } };
static const struct member volume_members[] = { { "volumeID", MEMBER_NEEDED, "volume" },
						{ "name", MEMBER_NEEDED, "name" },
						{ "token", MEMBER_TEXT, "token" },
						{ NULL } };
static const struct member secret_members[] = { { "secretID", MEMBER_NEEDED, "secret" },
						{ "name", MEMBER_NEEDED, "name" },
						{ "currentVersion", MEMBER_NUMBER, "version" },
						{ "metadata", MEMBER_PAIRS, "metadata" },
						{ "createdAt", MEMBER_TIME, "created_ms" },
						{ "updatedAt", MEMBER_TIME, "updated_ms" },
						{ NULL } };

static const struct member function_members[] = { { "functionID", MEMBER_NEEDED, "function" },
						  { "name", MEMBER_NEEDED, "name" },
						  { "runtime", MEMBER_NEEDED, "runtime" },
						  { "entry", MEMBER_NEEDED, "entry" },
						  { "memoryMB", MEMBER_GIVEN, "memory_mb" },
						  { "timeoutMs", MEMBER_NUMBER, "timeout_ms" },
						  { "concurrency", MEMBER_NUMBER, "concurrency" },
						  { "envNames", MEMBER_STRINGS, "env" },
						  { "allowInternetAccess", MEMBER_BOOL, "internet" },
						  { "allowOut", MEMBER_STRINGS, "allow_out" },
						  { "createdAt", MEMBER_TIME, "created_ms" },
						  { "invocations", MEMBER_NUMBER, "invocations" },
						  { "errors", MEMBER_NUMBER, "errors" },
						  { "coldStarts", MEMBER_NUMBER, "cold" },
						  { "p50Us", MEMBER_NUMBER, "p50_us" },
						  { "p95Us", MEMBER_NUMBER, "p95_us" },
						  { "running", MEMBER_NUMBER, "running" },
						  { "warm", MEMBER_NUMBER, "warm" },
						  { NULL } };
static const struct member function_log_members[] = { { "invocation", MEMBER_NUMBER, "invocation" },
						      { "timestamp", MEMBER_TIME, "time_ms" },
						      { "durationUs", MEMBER_NUMBER, "us" },
						      { "cold", MEMBER_BOOL, "cold" },
						      { "ended", MEMBER_NEEDED, "ended" },
						      { "exit", MEMBER_GIVEN, "exit" },
						      { "signal", MEMBER_GIVEN, "signal" },
						      { "log", MEMBER_NEEDED, "log" },
						      { "dropped", MEMBER_NUMBER, "dropped" },
						      { NULL } };

/* What stands around the rows of a list; a reply without rows has none. */
struct form {
	const struct member *members;
	const char *begin, *end;
	bool has_rows;
	const char *second;                 /* what begins another list of the same rows; NULL: there is none */
	const struct member *second_members;
};

static const struct member build_members[] = { { "templateID", MEMBER_NEEDED, "template" },
					       { "buildID", MEMBER_NEEDED, "build" },
					       { "names", MEMBER_STRINGS, "names" },
					       { "aliases", MEMBER_STRINGS, "names" },
					       { "tags", MEMBER_STRINGS, "tags" },
					       { "public", MEMBER_NUMBERED, "public" },
					       { NULL } };
static const struct member build_file_members[] = { { "present", MEMBER_NUMBERED, "present" },
						    { "url", MEMBER_TEXT, "url" },
						    { NULL } };
static const struct member build_log_members[] = { { "timestamp", MEMBER_TIME, "time_ms" },
						   { "level", MEMBER_NEEDED, "level" },
						   { "message", MEMBER_NEEDED, "message" },
						   { "step", MEMBER_TEXT, "step" },
						   { NULL } };
static const struct member build_status_members[] = { { "templateID", MEMBER_NEEDED, "template" },
						      { "buildID", MEMBER_NEEDED, "build" },
						      { "status", MEMBER_NEEDED, "status" },
						      { "reason", MEMBER_REASON },
						      { NULL } };
static const struct member alias_members[] = { { "templateID", MEMBER_NEEDED, "template" },
					       { "public", MEMBER_NUMBERED, "public" },
					       { NULL } };
static const struct member tag_members[] = { { "tag", MEMBER_NEEDED, "tag" },
					     { "buildID", MEMBER_NEEDED, "build" },
					     { "createdAt", MEMBER_TIME, "created_ms" },
					     { NULL } };
static const struct member tagged_members[] = { { "buildID", MEMBER_NEEDED, "build" },
						{ "tags", MEMBER_STRINGS, "tags" },
						{ NULL } };

static const struct form forms[ROUTE_FORM_COUNT] = {
	[ROUTE_NOTHING] = { NULL, "", "" },
	[ROUTE_SANDBOX] = { sandbox_members, "", "" },
	[ROUTE_DETAIL] = { detail_members, "", "" },
	[ROUTE_LISTED] = { listed_members, "[", "]", true },
	[ROUTE_FORKS] = { sandbox_members, "[", "]", true },
	[ROUTE_SNAPSHOT] = { snapshot_members, "", "" },
	[ROUTE_SNAPSHOTS] = { snapshot_members, "[", "]", true },
	[ROUTE_TEMPLATES] = { template_members, "[", "]", true },
	[ROUTE_METRICS] = { metric_members, "[", "]", true },
	[ROUTE_METRICS_MAP] = { metric_members, "{\"sandboxes\":{", "}}", true },
	[ROUTE_LOGS] = { log_members, "{\"logs\":[", "]}", true },
	[ROUTE_LOGS_OLD] = { line_members, "{\"logs\":[", "]}", true, "],\"logEntries\":[", log_members },
	[ROUTE_TEAMS] = { team_members, "[", "]" },
	[ROUTE_VOLUME] = { volume_members, "", "" },
	[ROUTE_VOLUMES] = { volume_members, "[", "]", true },
	[ROUTE_SECRET] = { secret_members, "", "" },
	[ROUTE_SECRETS] = { secret_members, "[", "]", true },
	[ROUTE_FUNCTION_ONE] = { function_members, "", "" },
	[ROUTE_FUNCTION_LIST] = { function_members, "[", "]", true },
	[ROUTE_FUNCTION_LOG] = { function_log_members, "{\"invocations\":[", "]}", true },
	[ROUTE_BUILD] = { build_members, "", "" },
	[ROUTE_BUILD_FILE] = { build_file_members, "", "" },
	[ROUTE_BUILD_STATUS] = { build_status_members, "", "" },
	[ROUTE_ALIAS] = { alias_members, "", "" },
	[ROUTE_TAGS] = { tag_members, "[", "]", true },
	[ROUTE_TAGGED] = { tagged_members, "", "" },
};

static void put_pairs(struct json *json, const char *name, const char *const *pairs)
{
	json_object_begin(json, name);
	for (size_t i = 0; i + 1 < strv_count(pairs); i += 2)
		json_string(json, pairs[i], pairs[i + 1]);
	json_object_end(json);
}

static void put_strings(struct json *json, const char *name, const char *const *strings)
{
	json_array_begin(json, name);
	for (size_t i = 0; i < strv_count(strings); i++)
		json_string(json, NULL, strings[i]);
	json_array_end(json);
}

static void put_mounts(struct json *json, const char *name, const char *const *pairs)
{
	json_array_begin(json, name);
	for (size_t i = 0; i + 1 < strv_count(pairs); i += 2) {
		json_object_begin(json, NULL);
		json_string(json, "name", pairs[i]);
		json_string(json, "path", pairs[i + 1]);
		json_object_end(json);
	}
	json_array_end(json);
}

static void put_time(struct json *json, const char *name, uint64_t ms)
{
	char text[TIME_SIZE];

	time_format(ms, text);
	json_string(json, name, text);
}

/* Old clients read an object out of the line of a record. */
static void put_line(struct json *json, const char *name, const struct service_message *from)
{
	const char *level = service_string(from, "level"), *message = service_string(from, "message");
	struct json inner;
	struct buf line;

	buf_init(&line, LINE_MAX_BYTES);
	json_init(&inner, &line);
	json_object_begin(&inner, NULL);
	json_string(&inner, "level", level ? level : "info");
	json_string(&inner, "logger", "atoll");
	json_string(&inner, "message", message ? message : "");
	json_object_end(&inner);
	json_string(json, name, buf_text(&line));
	buf_done(&line);
}

static void put_lifecycle(struct json *json, const char *name, const struct service_message *from)
{
	json_object_begin(json, name);
	json_string(json, "onTimeout", service_number(from, "auto_pause", 0) ? "pause" : "kill");
	json_bool(json, "autoResume", service_number(from, "auto_resume", 0));
	json_object_end(json);
}

static void put_network(struct json *json, const char *name, const struct service_message *from)
{
	json_object_begin(json, name);
	put_strings(json, "allowOut", service_strings(from, "allow_out"));
	put_strings(json, "denyOut", service_strings(from, "deny_out"));
	json_bool(json, "allowPublicTraffic", service_number(from, "public_traffic", 1));
	if (service_string(from, "mask_host"))
		json_string(json, "maskRequestHost", service_string(from, "mask_host"));
	json_object_end(json);
}

static void put_text(struct json *json, const struct member *member, const struct service_message *from)
{
	const char *text = member->key ? service_string(from, member->key) : member->constant;

	if (!text && member->kind == MEMBER_NEEDED)
		text = "";
	if (text)
		json_string(json, member->name, text);
}

static void put_reason(struct json *json, const char *name, const struct service_message *from)
{
	const char *message = service_string(from, "message"), *step = service_string(from, "step");

	if (!message)
		return;
	json_object_begin(json, name);
	json_string(json, "message", message);
	if (step)
		json_string(json, "step", step);
	json_object_end(json);
}

static void put_member(struct json *json, const struct member *member, const struct service_message *from)
{
	uint64_t number = member->key ? service_number(from, member->key, 0) : 0;

	switch (member->kind) {
	case MEMBER_TEXT:
	case MEMBER_NEEDED:
		return put_text(json, member, from);
	case MEMBER_NUMBER:
		return json_u64(json, member->name, number);
	case MEMBER_GIVEN:
		return service_get(from, member->key) ? json_u64(json, member->name, number) : (void)0;
	case MEMBER_TIME:
		return put_time(json, member->name, number);
	case MEMBER_UNIX:
		return json_u64(json, member->name, number / MS_PER_S);
	case MEMBER_BOOL:
		return service_get(from, member->key) ? json_bool(json, member->name, number) : (void)0;
	case MEMBER_THOUSANDTHS:
		return json_fixed(json, member->name, number);
	case MEMBER_STRINGS:
		return put_strings(json, member->name, service_strings(from, member->key));
	case MEMBER_PAIRS:
		return put_pairs(json, member->name, service_strings(from, member->key));
	case MEMBER_MOUNTS:
		return put_mounts(json, member->name, service_strings(from, member->key));
	case MEMBER_LINE:
		return put_line(json, member->name, from);
	case MEMBER_LIFECYCLE:
		return put_lifecycle(json, member->name, from);
	case MEMBER_NETWORK:
		return put_network(json, member->name, from);
	case MEMBER_NUMBERED:
		return json_bool(json, member->name, number);
	case MEMBER_REASON:
		return put_reason(json, member->name, from);
	}
}

static void put_members(struct json *json, const char *name, const struct member *members,
			const struct service_message *from)
{
	json_object_begin(json, name);
	for (; members && members->name; members++)
		put_member(json, members, from);
	json_object_end(json);
}

/* {"sandbox":{…}}, or {"error":{"code":…,"message":…}} for one that failed. */
static void put_fork(struct json *json, const struct service_message *row)
{
	uint64_t status = service_number(row, "status", 0);

	json_object_begin(json, NULL);
	if (status < 300) {
		put_members(json, "sandbox", sandbox_members, row);
		if (service_number(row, "files_only", 0))
			json_bool(json, "filesOnly", true);
	} else {
		json_object_begin(json, "error");
		json_u64(json, "code", status);
		json_string(json, "message",
			    service_string(row, "message") ? service_string(row, "message") : "failed");
		json_object_end(json);
	}
	json_object_end(json);
}

static void put_row(enum route_form form, const struct service_message *row, struct buf *out)
{
	struct json json;

	json_init(&json, out);
	if (form == ROUTE_FORKS)
		return put_fork(&json, row);
	if (form != ROUTE_METRICS_MAP)
		return put_members(&json, NULL, forms[form].members, row);
	/* An id needs no escapes. */
	buf_put_char(out, '"');
	buf_put_text(out, service_string(row, "sandbox") ? service_string(row, "sandbox") : "");
	buf_put_text(out, "\":");
	put_members(&json, NULL, metric_members, row);
}

void control_reply_init(struct control_reply *reply, size_t max)
{
	*reply = (struct control_reply){ 0 };
	buf_init(&reply->text, max);
	buf_init(&reply->second, max);
}

void control_reply_done(struct control_reply *reply)
{
	buf_done(&reply->text);
	buf_done(&reply->second);
}

void control_begin_reply(enum route_form form, struct control_reply *out)
{
	buf_put_text(&out->text, forms[form].begin);
}

static void put_second(enum route_form form, const struct service_message *row, struct control_reply *out)
{
	struct json json;

	if (!forms[form].second)
		return;
	if (out->rows)
		buf_put_char(&out->second, ',');
	json_init(&json, &out->second);
	put_members(&json, NULL, forms[form].second_members, row);
}

static int put_rows(enum route_form form, const struct service_message *reply, struct control_reply *out)
{
	struct service_message *row = malloc(sizeof *row);
	size_t at = 0;
	int r = row ? 0 : -ENOMEM;

	while (r >= 0 && (r = service_next_row(reply, &at, row)) > 0) {
		if (out->rows)
			buf_put_char(&out->text, ',');
		put_row(form, row, &out->text);
		put_second(form, row, out);
		out->rows++;
		service_message_done(row);
	}
	free(row);
	return r;
}

/* The state of a build, and what it said since the client asked last. */
static int put_build(const struct service_message *reply, struct buf *out)
{
	struct service_message *row = malloc(sizeof *row);
	struct json json;
	size_t at = 0;
	int r = row ? 0 : -ENOMEM;

	json_init(&json, out);
	json_object_begin(&json, NULL);
	for (const struct member *member = build_status_members; member->name; member++)
		put_member(&json, member, reply);
	json_array_begin(&json, "logs");
	json_array_end(&json);
	json_array_begin(&json, "logEntries");
	while (r >= 0 && (r = service_next_row(reply, &at, row)) > 0) {
		put_members(&json, NULL, build_log_members, row);
		service_message_done(row);
	}
	json_array_end(&json);
	json_object_end(&json);
	free(row);
	return r;
}

int control_put_reply(enum route_form form, const struct service_message *reply, struct control_reply *out)
{
	int r = 0;

	if (form == ROUTE_BUILD_STATUS)
		r = put_build(reply, &out->text);
	else if (forms[form].has_rows)
		r = put_rows(form, reply, out);
	else if (forms[form].members)
		put_row(form, reply, &out->text);
	return r < 0 ? r : buf_error(&out->text);
}

void control_end_reply(enum route_form form, struct control_reply *out)
{
	if (forms[form].second) {
		buf_put_text(&out->text, forms[form].second);
		if (buf_error(&out->second) < 0)
			out->text.error = buf_error(&out->second);
		else
			buf_put(&out->text, out->second.bytes, out->second.size);
	}
	buf_put_text(&out->text, forms[form].end);
}

void control_put_error(struct buf *out, unsigned status, const char *message, const char *error_code)
{
	struct json json;

	json_init(&json, out);
	json_object_begin(&json, NULL);
	json_u64(&json, "code", status);
	json_string(&json, "message", message && *message ? message : "the request failed");
	if (error_code)
		json_string(&json, "error_code", error_code);
	json_object_end(&json);
}

void control_put_unreachable(struct buf *out, unsigned status, const char *sandbox, unsigned port,
			     const char *message)
{
	struct json json;

	json_init(&json, out);
	json_object_begin(&json, NULL);
	json_string(&json, "sandboxId", sandbox);
	json_string(&json, "message", message);
	if (port)
		json_u64(&json, "port", port);
	json_u64(&json, "code", status);
	json_object_end(&json);
}
