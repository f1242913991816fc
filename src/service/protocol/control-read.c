/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "service/protocol/control.h"
#include "service/protocol/value.h"

/* How a member of a body becomes fields of a frame. */
enum member_kind {
	MEMBER_TEXT,
	MEMBER_BOOL,
	MEMBER_NUMBER,
	MEMBER_SECONDS,
	MEMBER_STRINGS,
	MEMBER_PAIRS,
	MEMBER_ENVIRONMENT,
	MEMBER_MOUNTS,
	MEMBER_RULES,
	MEMBER_OBJECT,
	MEMBER_STEPS,
	MEMBER_IGNORED,
	MEMBER_UNSERVED,
	MEMBER_BYTES,            /* read by its handler (value_bytes()) */
};

enum { LIST_MAX = 256, PAIRS_MAX = 64, MOUNTS_MAX = 16, RULES_MAX = 256, MS_PER_S = 1000 };
enum { SECONDS_MAX = 366 * 86400, STEP_STRINGS_MAX = 4096 };

struct member {
	const char *name; /* NULL ends a list */
	enum member_kind kind;
	const char *key;
	const struct member *members; /* MEMBER_OBJECT */
};

static const struct member resume_members[] = { { "enabled", MEMBER_BOOL, "auto_resume" }, { NULL } };

#define EGRESS                                                                                                       \
	{ "allowOut", MEMBER_STRINGS, "allow_out" }, { "denyOut", MEMBER_STRINGS, "deny_out" },                      \
		{ "rules", MEMBER_RULES, "rules" },                                                                  \
	{                                                                                                            \
		"egressProxy", MEMBER_UNSERVED                                                                       \
	}

static const struct member network_members[] = {
	EGRESS,
	{ "allowPublicTraffic", MEMBER_BOOL, "public_traffic" },
	{ "maskRequestHost", MEMBER_TEXT, "mask_host" },
	{ "httpsPorts", MEMBER_UNSERVED },
	{ NULL },
};
static const struct member create_members[] = {
	{ "templateID", MEMBER_TEXT, "template" },
	{ "timeout", MEMBER_SECONDS, "timeout_ms" },
	{ "metadata", MEMBER_PAIRS, "metadata" },
	{ "envVars", MEMBER_ENVIRONMENT, "env" },
	{ "allowInternetAccess", MEMBER_BOOL, "internet" },
	{ "network", MEMBER_OBJECT, NULL, network_members },
	{ "iam", MEMBER_UNSERVED },
	{ "mcp", MEMBER_UNSERVED },
	{ "autoPause", MEMBER_BOOL, "auto_pause" },
	{ "autoPauseMemory", MEMBER_BOOL, "auto_pause_memory" },
	{ "autoResume", MEMBER_OBJECT, NULL, resume_members },
	{ "volumeMounts", MEMBER_MOUNTS, "volumes" },
	{ "secure", MEMBER_BOOL, "secure" },
	{ NULL },
};
static const struct member connect_members[] = { { "timeout", MEMBER_SECONDS, "timeout_ms" },
						 { "memory", MEMBER_BOOL, "memory" },
						 { NULL } };
static const struct member timeout_members[] = { { "timeout", MEMBER_SECONDS, "timeout_ms" },
						 { "duration", MEMBER_SECONDS, "timeout_ms" },
						 { NULL } };
static const struct member pause_members[] = { { "memory", MEMBER_BOOL, "memory" }, { NULL } };
static const struct member fork_members[] = { { "timeout", MEMBER_SECONDS, "timeout_ms" },
					      { "count", MEMBER_NUMBER, "count" },
					      { NULL } };
static const struct member name_members[] = { { "name", MEMBER_TEXT, "name" }, { NULL } };
static const struct member rules_members[] = { EGRESS, { "allowInternetAccess", MEMBER_BOOL, "internet" }, { NULL } };
static const struct member secret_members[] = { { "name", MEMBER_TEXT, "name" },
						{ "value", MEMBER_TEXT, "value" },
						{ "metadata", MEMBER_PAIRS, "metadata" },
						{ NULL } };
static const struct member update_members[] = { { "value", MEMBER_TEXT, "value" },
						{ "metadata", MEMBER_PAIRS, "metadata" },
						{ NULL } };

static const struct member deploy_members[] = {
	{ "name", MEMBER_TEXT, "name" },
	{ "runtime", MEMBER_TEXT, "runtime" },
	{ "entry", MEMBER_TEXT, "entry" },
	{ "memoryMB", MEMBER_NUMBER, "memory_mb" },
	{ "timeoutMs", MEMBER_NUMBER, "timeout_ms" },
	{ "concurrency", MEMBER_NUMBER, "concurrency" },
	{ "envVars", MEMBER_ENVIRONMENT, "env" },
	{ "allowInternetAccess", MEMBER_BOOL, "internet" },
	{ "allowOut", MEMBER_STRINGS, "allow_out" },
	{ "archive", MEMBER_BYTES },
	{ NULL },
};
/* How large a sandbox is, the policy of its key says, whatever its template asks for. */
static const struct member build_members[] = { { "name", MEMBER_TEXT, "name" },
					       { "alias", MEMBER_TEXT, "name" },
					       { "tags", MEMBER_STRINGS, "tags" },
					       { "cpuCount", MEMBER_IGNORED },
					       { "memoryMB", MEMBER_IGNORED },
					       { "minFreeDiskMb", MEMBER_IGNORED },
					       { NULL } };
static const struct member start_members[] = { { "fromImage", MEMBER_TEXT, "from_image" },
					       { "fromTemplate", MEMBER_TEXT, "from_template" },
					       { "fromImageRegistry", MEMBER_UNSERVED },
					       { "steps", MEMBER_STEPS, "steps" },
					       { "startCmd", MEMBER_TEXT, "start" },
					       { "readyCmd", MEMBER_TEXT, "ready" },
					       { "force", MEMBER_BOOL, "force" },
					       { NULL } };
static const struct member tag_members[] = { { "target", MEMBER_TEXT, "name" },
					     { "tags", MEMBER_STRINGS, "tags" },
					     { NULL } };
static const struct member untag_members[] = { { "name", MEMBER_TEXT, "name" },
					       { "tags", MEMBER_STRINGS, "tags" },
					       { NULL } };

static const struct member *const bodies[SERVICE_OPERATION_COUNT] = {
	[SERVICE_CREATE] = create_members,
	[SERVICE_CONNECT] = connect_members,
	[SERVICE_TIMEOUT] = timeout_members,
	[SERVICE_PAUSE] = pause_members,
	[SERVICE_FORK] = fork_members,
	[SERVICE_SNAPSHOT] = name_members,
	[SERVICE_NETWORK] = rules_members,
	[SERVICE_VOLUME_CREATE] = name_members,
	[SERVICE_SECRET_CREATE] = secret_members,
	[SERVICE_SECRET_UPDATE] = update_members,
	[SERVICE_FUNCTION_DEPLOY] = deploy_members,
	[SERVICE_BUILD_REQUEST] = build_members,
	[SERVICE_BUILD_START] = start_members,
	[SERVICE_TAGS_ADD] = tag_members,
	[SERVICE_TAGS_REMOVE] = untag_members,
};

/* One body as it is read. */
struct reading {
	const json_t *object;
	struct buf *out;
	bool has_timeout;
	char *why;
};

static int refuse(struct reading *reading, const char *name, const char *what, int r)
{
	if (str_format(reading->why, CONTROL_WHY_SIZE, "\"%s\" %s", name, what) < 0)
		reading->why[0] = 0;
	return r;
}

static int put_text(struct reading *reading, const struct member *member)
{
	const char *text = NULL;
	int r = value_string(reading->object, member->name, &text, reading->why);

	if (r > 0 && *text)
		field_put_string(reading->out, member->key, text);
	return r;
}

static int put_bool(struct reading *reading, const struct member *member)
{
	bool is_set = false;
	int r = value_bool(reading->object, member->name, &is_set, reading->why);

	if (r > 0)
		field_put_u64(reading->out, member->key, is_set);
	return r;
}

static int put_number(struct reading *reading, const struct member *member)
{
	uint64_t number = 0;
	int r = value_number(reading->object, member->name, UINT32_MAX, &number, reading->why);

	if (r > 0)
		field_put_u64(reading->out, member->key, number);
	return r;
}

static int put_seconds(struct reading *reading, const struct member *member)
{
	uint64_t seconds = 0;
	int r = value_number(reading->object, member->name, SECONDS_MAX, &seconds, reading->why);

	if (r > 0 && !reading->has_timeout) {
		field_put_u64(reading->out, member->key, seconds * MS_PER_S);
		reading->has_timeout = true;
	}
	return r;
}

static int put_strings(struct reading *reading, const struct member *member)
{
	const json_t *array = NULL;
	const char **strings;
	int r = value_array(reading->object, member->name, &array, reading->why);

	if (r <= 0)
		return r;
	strings = value_strings(array, LIST_MAX, reading->why);
	if (!strings)
		return -EINVAL;
	field_put_strings(reading->out, member->key, strings);
	free(strings);
	return 1;
}

static int put_pairs(struct reading *reading, const struct member *member)
{
	const json_t *map = NULL;
	const char **pairs;
	int r = value_object(reading->object, member->name, &map, reading->why);

	if (r <= 0)
		return r;
	pairs = value_pairs(map, PAIRS_MAX / 2, reading->why);
	if (!pairs)
		return -EINVAL;
	field_put_strings(reading->out, member->key, pairs);
	free(pairs);
	return 1;
}

static int put_environment(struct reading *reading, const struct member *member)
{
	const json_t *map = NULL;
	char **strings;
	int r = value_object(reading->object, member->name, &map, reading->why);

	if (r <= 0)
		return r;
	strings = value_environment(map, LIST_MAX, reading->why);
	if (!strings)
		return -EINVAL;
	field_put_strings(reading->out, member->key, (const char *const *)strings);
	strv_free(strings);
	return 1;
}

/* [{"name":N,"path":P}] */
static int put_mounts(struct reading *reading, const struct member *member)
{
	const char *strings[2 * MOUNTS_MAX + 1] = { NULL };
	const json_t *array = NULL;
	int r = value_array(reading->object, member->name, &array, reading->why);

	if (r <= 0)
		return r;
	if (json_array_size(array) > MOUNTS_MAX)
		return refuse(reading, member->name, "has too many entries", -EINVAL);
	for (size_t i = 0; i < json_array_size(array); i++) {
		const json_t *mount = json_array_get(array, i);

		if (value_string(mount, "name", &strings[2 * i], reading->why) <= 0 ||
		    value_string(mount, "path", &strings[2 * i + 1], reading->why) <= 0)
			return refuse(reading, member->name, "has an entry without \"name\" or \"path\"", -EINVAL);
	}
	field_put_strings(reading->out, member->key, strings);
	return 1;
}

static bool asks_nothing(const json_t *value)
{
	return !value || json_is_null(value) || json_is_false(value) ||
	       (json_is_array(value) && !json_array_size(value)) || (json_is_object(value) && !json_object_size(value));
}

static bool is_known(const char *name, const struct member *members)
{
	for (; members && members->name; members++)
		if (value_is_name(name, members->name))
			return true;
	return false;
}

/* What nobody here knows is not done, and that is said; what asks for nothing is no question. */
static int refuse_others(struct reading *reading, const struct member *members)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)reading->object, name, value)
		if (!is_known(name, members) && !asks_nothing(value))
			return refuse(reading, name, "is not served here", -ENOTSUP);
	return 0;
}

/* Appends HOST, NAME, VALUE for each header of {"transform":{"headers":{NAME:VALUE}}}. */
static int add_headers(struct reading *reading, const char *host, const json_t *rule, const char **strings,
		       size_t *count)
{
	static const struct member rule_members[] = { { "transform" }, { NULL } };
	static const struct member transform_members[] = { { "headers" }, { NULL } };
	struct reading inner = *reading;
	const json_t *headers = NULL;
	const char *name;
	json_t *value;
	int r;

	inner.object = rule;
	r = refuse_others(&inner, rule_members);
	if (r == 0)
		r = value_object(rule, "transform", &inner.object, reading->why);
	if (r > 0)
		r = refuse_others(&inner, transform_members) < 0 ? -ENOTSUP :
		    value_object(inner.object, "headers", &headers, reading->why);
	if (r <= 0)
		return r;
	json_object_foreach((json_t *)headers, name, value)
	{
		if (!json_is_string(value) || *count == 3 * RULES_MAX)
			return refuse(reading, "rules", "has a header that is no string, or too many", -EINVAL);
		strings[(*count)++] = host;
		strings[(*count)++] = name;
		strings[(*count)++] = json_string_value(value);
	}
	return 0;
}

static int collect_rules(struct reading *reading, const json_t *rules, const char **strings)
{
	const char *host;
	json_t *list;
	size_t count = 0;

	json_object_foreach((json_t *)rules, host, list)
	{
		if (!json_is_array(list))
			return refuse(reading, "rules", "has a host without a list", -EINVAL);
		for (size_t i = 0; i < json_array_size(list); i++) {
			int r = add_headers(reading, host, json_array_get(list, i), strings, &count);

			if (r < 0)
				return r;
		}
	}
	return 0;
}

/* {HOST:[{"transform":{"headers":{NAME:VALUE}}}]} */
static int put_rules(struct reading *reading, const struct member *member)
{
	const json_t *rules = NULL;
	const char **strings;
	int r = value_object(reading->object, member->name, &rules, reading->why);

	if (r <= 0)
		return r;
	strings = calloc(3 * RULES_MAX + 1, sizeof *strings);
	if (!strings)
		return -ENOMEM;
	r = collect_rules(reading, rules, strings);
	if (r == 0)
		field_put_strings(reading->out, member->key, strings);
	free(strings);
	return r;
}

/* What a step has, and is not known here: how its client sends the files. */
static bool is_of_step(const char *name)
{
	static const char *const known[] = { "type", "args", "filesHash", "force", "forceUpload", "resolveSymlinks",
					     "gzip" };

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (value_is_name(name, known[i]))
			return true;
	return false;
}

/* Appends type, hash, force, number of arguments, arguments (wire/service-table.c). */
static int add_step(struct reading *reading, const json_t *step, const char **strings, size_t *count)
{
	static const char *const numbers[] = { "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12",
					       "13", "14", "15", "16", "17", "18", "19", "20", "21", "22", "23",
					       "24", "25", "26", "27", "28", "29", "30", "31", "32" };
	const json_t *arguments = NULL;
	const char *type = NULL, *hash = "", *name;
	bool is_forced = false;
	json_t *value;
	size_t size;

	if (!json_is_object(step) || value_string(step, "type", &type, reading->why) <= 0 ||
	    value_string(step, "filesHash", &hash, reading->why) < 0 ||
	    value_bool(step, "force", &is_forced, reading->why) < 0 ||
	    value_array(step, "args", &arguments, reading->why) < 0)
		return refuse(reading, "steps", "has an entry that is no step", -EINVAL);
	json_object_foreach((json_t *)step, name, value)
		if (!is_of_step(name) && !json_is_null(value))
			return refuse(reading, name, "of a step is not served here", -ENOTSUP);
	size = json_array_size(arguments);
	if (size >= ARRAY_SIZE(numbers) || *count + 4 + size > STEP_STRINGS_MAX)
		return refuse(reading, "steps", "has too many entries or arguments", -EINVAL);
	strings[(*count)++] = type;
	strings[(*count)++] = hash;
	strings[(*count)++] = is_forced ? "1" : "";
	strings[(*count)++] = numbers[size];
	for (size_t i = 0; i < size; i++) {
		strings[*count] = json_string_value(json_array_get(arguments, i));
		if (!strings[(*count)++])
			return refuse(reading, "steps", "has an argument that is no string", -EINVAL);
	}
	return 0;
}

static int put_steps(struct reading *reading, const struct member *member)
{
	const json_t *array = NULL;
	const char **strings;
	size_t count = 0;
	int r = value_array(reading->object, member->name, &array, reading->why);

	if (r <= 0)
		return r;
	strings = calloc(STEP_STRINGS_MAX + 1, sizeof *strings);
	if (!strings)
		return -ENOMEM;
	r = 0;
	for (size_t i = 0; r == 0 && i < json_array_size(array); i++)
		r = add_step(reading, json_array_get(array, i), strings, &count);
	if (r == 0)
		field_put_strings(reading->out, member->key, strings);
	free(strings);
	return r;
}

static int put_nothing(struct reading *reading, const struct member *member)
{
	return 0;
}

static int put_members(struct reading *reading, const struct member *members);

static int put_object(struct reading *reading, const struct member *member)
{
	struct reading inner = *reading;
	int r = value_object(reading->object, member->name, &inner.object, reading->why);

	return r <= 0 ? r : put_members(&inner, member->members);
}

static int put_unserved(struct reading *reading, const struct member *member)
{
	const json_t *value = value_member(reading->object, member->name);

	return asks_nothing(value) ? 0 : refuse(reading, member->name, "is not served here", -ENOTSUP);
}

static int put_members(struct reading *reading, const struct member *members)
{
	static int (*const put[])(struct reading * reading, const struct member *member) = {
		[MEMBER_TEXT] = put_text,
		[MEMBER_BOOL] = put_bool,
		[MEMBER_NUMBER] = put_number,
		[MEMBER_SECONDS] = put_seconds,
		[MEMBER_STRINGS] = put_strings,
		[MEMBER_PAIRS] = put_pairs,
		[MEMBER_ENVIRONMENT] = put_environment,
		[MEMBER_MOUNTS] = put_mounts,
		[MEMBER_RULES] = put_rules,
		[MEMBER_OBJECT] = put_object,
		[MEMBER_STEPS] = put_steps,
		[MEMBER_IGNORED] = put_nothing,
		[MEMBER_UNSERVED] = put_unserved,
		[MEMBER_BYTES] = put_nothing,
	};

	for (const struct member *member = members; member && member->name; member++) {
		int r = put[member->kind](reading, member);

		if (r < 0)
			return r;
	}
	return refuse_others(reading, members);
}

int control_read_body(const struct route *route, const void *json, size_t size, struct buf *out,
		      char why[CONTROL_WHY_SIZE])
{
	struct reading reading = { .out = out, .why = why };
	json_t *object;
	int r = value_parse(json, size, &object, why);

	if (r < 0)
		return r;
	reading.object = object;
	r = put_members(&reading, bodies[route->operation]);
	json_decref(object);
	if (r < 0)
		return r;
	if (!reading.has_timeout && route->timeout_s)
		field_put_u64(out, "timeout_ms", (uint64_t)route->timeout_s * MS_PER_S);
	if (route->flags & ROUTE_EXTENDS)
		field_put_u64(out, "extend", 1);
	return buf_error(out);
}
