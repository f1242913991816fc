/* SPDX-License-Identifier: Apache-2.0 */
#include "learn/observed.h"

#include <errno.h>
#include <jansson.h>
#include <sodium/utils.h>
#include <string.h>

#include "audit/reader.h"
#include "http/target.h"

/* One record at a time: its JSON, and where what is not UTF-8 is decoded to. */
struct record {
	const json_t *entry, *detail;
	struct observed observed;
	const char *argv[OBSERVED_ARGV_MAX + 1], *names[3];
	char texts[OBSERVED_TEXT_MAX];
	size_t used;
	bool is_bad;
};

struct reading {
	const struct observed_visits *visits;
	void *context;
	struct observed_log *log;
	struct record record;
};

void observed_init(void)
{
	json_object_seed(0);
}

struct decision observed_decide(const struct policy *policy, const struct observed *observed)
{
	static const struct decision unread = { VERDICT_DENY, { "builtin.http", "", 0 }, "the request cannot be read",
						"", NULL };
	struct action reading = observed->action;
	struct decision decision;
	struct target target;

	if (observed->action.kind != ACTION_HTTP_REQUEST)
		return policy_decide(policy, &observed->action);
	if (target_read(observed->action.path, observed->climbs, &target) < 0)
		return unread;
	decision = target_judge(&target, policy, &reading);
	target_done(&target);
	return decision;
}

/* The text of a string, or of {"b64": …}; a NUL in it, or no text at all, makes the record bad. */
static const char *text_of(struct record *record, const json_t *value)
{
	const json_t *b64 = json_object_get(value, "b64");
	char *out = record->texts + record->used;
	size_t room = sizeof record->texts - record->used, size;

	if (json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value))
		return json_string_value(value);
	if (json_is_string(b64) && room &&
	    sodium_base642bin((uint8_t *)out, room - 1, json_string_value(b64), json_string_length(b64), NULL, &size,
			      NULL, sodium_base64_VARIANT_ORIGINAL) == 0 && !memchr(out, 0, size)) {
		out[size] = 0;
		record->used += size + 1;
		return out;
	}
	record->is_bad = true;
	return "";
}

static const char *optional_text(struct record *record, const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return value ? text_of(record, value) : "";
}

static uint64_t number_of(const json_t *object, const char *key, uint64_t otherwise)
{
	const json_t *value = json_object_get(object, key);

	return json_is_integer(value) && json_integer_value(value) >= 0 ? (uint64_t)json_integer_value(value)
									: otherwise;
}

static bool has_flag(struct record *record, const char *flag)
{
	const char *flags = json_string_value(json_object_get(record->detail, "flags"));

	return flags && strstr(flags, flag);
}

static void take_port(struct record *record)
{
	uint64_t port = number_of(record->detail, "port", 0);

	if (port > UINT16_MAX)
		record->is_bad = true;
	record->observed.action.port = (uint16_t)port;
}

static void take_argv(struct record *record)
{
	const json_t *argv = json_object_get(record->detail, "argv");
	size_t count = json_array_size(argv);

	record->observed.action.is_cut = count > OBSERVED_ARGV_MAX || json_object_get(record->detail, "left_out");
	count = count > OBSERVED_ARGV_MAX ? OBSERVED_ARGV_MAX : count;
	for (size_t i = 0; i < count; i++)
		record->argv[i] = text_of(record, json_array_get(argv, i));
	record->argv[count] = NULL;
	record->observed.action.argv = record->argv;
}

/* Whether an array of the record has this text. */
static bool has_text(struct record *record, const char *key, const char *text)
{
	const json_t *array = json_object_get(record->detail, key);

	for (size_t i = 0; i < json_array_size(array); i++)
		if (strcmp(text_of(record, json_array_get(array, i)), text) == 0)
			return true;
	return false;
}

/* The program is what its path leads to, where the record says it; by whichever of the two a rule names it. */
static void take_program(struct record *record)
{
	struct observed *observed = &record->observed;
	const char *path = optional_text(record, record->detail, "path");

	take_argv(record);
	observed->is_missing = json_object_get(record->detail, "errno");
	if (*path == '/') {
		observed->called = observed->action.subject;
		record->names[0] = path;
		record->names[1] = *observed->called == '/' ? observed->called : NULL;
		record->names[2] = NULL;
		observed->action.names = record->names;
		observed->action.subject = path;
	}
	observed->is_new = has_text(record, "new", observed->action.subject);
	observed->is_relative = *observed->action.subject != '/';
}

static void take_request(struct record *record)
{
	take_port(record);
	record->observed.action.method = optional_text(record, record->detail, "method");
	record->observed.action.path = optional_text(record, record->detail, "path");
	record->observed.climbs = (uint32_t)number_of(record->detail, "query_climbs", 0);
	/* Malformed ones are refused by the gate, whatever the policy says. */
	if (!*record->observed.action.path)
		record->is_bad = true;
}

static int take_findings(struct reading *reading)
{
	struct record *record = &reading->record;
	const json_t *findings = json_object_get(record->detail, "findings");
	int r = 0;

	for (size_t i = 0; r == 0 && reading->visits->finding && i < json_array_size(findings); i++) {
		const json_t *told = json_array_get(findings, i);
		struct observed_finding finding = {
			optional_text(record, told, "id"), optional_text(record, told, "severity"),
			optional_text(record, told, "reason"), optional_text(record, told, "action"),
		};

		r = reading->visits->finding(reading->context, &finding);
	}
	return r;
}

static int take_question(struct reading *reading)
{
	struct record *record = &reading->record;
	const char *subject = optional_text(record, record->entry, "subject");
	const char *rule = optional_text(record, record->entry, "rule");

	return reading->visits->question ? reading->visits->question(reading->context, subject, rule) : 0;
}

static int take_alert(struct reading *reading)
{
	struct record *record = &reading->record;
	const struct observed_alert alert = {
		optional_text(record, record->detail, "alert"), optional_text(record, record->entry, "subject"),
		optional_text(record, record->detail, "host"), optional_text(record, record->entry, "exe"),
	};

	return reading->visits->alert ? reading->visits->alert(reading->context, &alert) : 0;
}

/* Records that are about no action. */
static const struct {
	const char *type;
	int (*take)(struct reading *reading);
} others[] = {
	{ "exec.verify", take_findings },
	{ "ask.open", take_question },
	{ "alert", take_alert },
};

static const char programs[] = "exec.start", renames[] = "file.rename", changes[] = "policy.change",
		  ends[] = "session.end";

/* What a policy decides about, by the type of the record (doc/format/audit.md). */
static const struct observed_kind {
	const char *type;
	enum action_kind kind;
	void (*take)(struct record *record);   /* beside the subject; NULL: nothing */
} kinds[] = {
	{ programs, ACTION_EXEC, take_program },
	{ "file.open", ACTION_FILE_READ, NULL },
	{ "file.write", ACTION_FILE_WRITE, NULL },
	{ "file.remove", ACTION_FILE_WRITE, NULL },
	{ renames, ACTION_FILE_WRITE, NULL },
	{ "net.dns", ACTION_NET_DNS, NULL },
	{ "net.connect", ACTION_NET_CONNECT, take_port },
	{ "net.http", ACTION_HTTP_REQUEST, take_request },
};

static const struct observed_kind *kind_of(const char *type)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strcmp(kinds[i].type, type) == 0)
			return &kinds[i];
	return NULL;
}

static int visit(struct reading *reading)
{
	struct record *record = &reading->record;

	if (record->is_bad) {
		reading->log->unreadable++;
		return 0;
	}
	reading->log->actions++;
	return reading->visits->action ? reading->visits->action(reading->context, &record->observed) : 0;
}

/* What the kernel starts for a script is a program as well; with which words is nowhere. */
static int visit_interpreters(struct reading *reading)
{
	struct record *record = &reading->record;
	struct observed *observed = &record->observed;
	const json_t *paths = json_object_get(record->detail, "interpreters");
	int r = 0;

	for (size_t i = 0; r == 0 && i < json_array_size(paths); i++) {
		observed->action.subject = text_of(record, json_array_get(paths, i));
		observed->action.argv = observed->action.names = NULL;
		observed->action.is_cut = false;
		observed->called = NULL;
		observed->is_new = has_text(record, "new", observed->action.subject);
		observed->is_relative = *observed->action.subject != '/';
		r = visit(reading);
	}
	return r;
}

static int take_action(struct reading *reading, const struct observed_kind *kind)
{
	struct record *record = &reading->record;
	struct observed *observed = &record->observed;
	const char *to;
	int r;

	/* A connection from outside to a published port is no action of the sandbox. */
	if (json_object_get(record->detail, "published"))
		return 0;
	observed->action.kind = kind->kind;
	observed->action.subject = optional_text(record, record->entry, "subject");
	observed->verdict = optional_text(record, record->entry, "verdict");
	observed->rule = optional_text(record, record->entry, "rule");
	observed->exe = optional_text(record, record->entry, "exe");
	observed->count = number_of(record->detail, "count", 1);
	observed->is_directory = has_flag(record, "O_DIRECTORY");
	if (kind->take)
		kind->take(record);
	r = visit(reading);
	if (r == 0 && kind->type == programs)
		r = visit_interpreters(reading);
	if (r != 0 || kind->type != renames || !json_object_get(record->detail, "to"))
		return r;
	to = optional_text(record, record->detail, "to");
	observed->action.subject = to;
	return visit(reading);
}

static int take_entry(struct reading *reading, const json_t *entry)
{
	struct record *record = &reading->record;
	const char *type = json_string_value(json_object_get(entry, "type"));
	const struct observed_kind *kind = type ? kind_of(type) : NULL;

	record->entry = entry;
	record->detail = json_object_get(entry, "detail");
	record->used = 0;
	record->is_bad = false;
	record->observed = (struct observed){ .record = number_of(entry, "seq", 0) };
	if (kind)
		return take_action(reading, kind);
	for (size_t i = 0; type && i < ARRAY_SIZE(others); i++)
		if (strcmp(others[i].type, type) == 0)
			return others[i].take(reading);
	if (!type)
		reading->log->unreadable++;
	else if (strcmp(type, changes) == 0 &&
		 json_object_get(record->detail, "policy_hash"))
		reading->log->is_policy_changed = true;
	else if (strcmp(type, "exec.end") == 0 && json_object_get(record->detail, "errno"))
		reading->log->failed++;
	else if (strcmp(type, ends) == 0)
		reading->log->has_end = true;
	return 0;
}

static int take_line(struct reading *reading, enum audit_line kind, const char *line, size_t size)
{
	json_t *entry = kind == AUDIT_LINE_WHOLE ? json_loadb(line, size, JSON_ALLOW_NUL, NULL) : NULL;
	int r = 0;

	reading->log->records++;
	if (json_is_object(entry))
		r = take_entry(reading, entry);
	else
		reading->log->unreadable++;
	json_decref(entry);
	return r;
}

int observed_read(int log_fd, observed_visit *visit_one, void *context, struct observed_log *ret_log)
{
	return observed_read_all(log_fd, &(struct observed_visits){ .action = visit_one }, context, ret_log);
}

int observed_read_all(int log_fd, const struct observed_visits *visits, void *context, struct observed_log *ret_log)
{
	cleanup_audit_reader struct audit_reader reader = { 0 };
	struct observed_log log = { 0 };
	struct reading *reading = calloc(1, sizeof *reading);
	int r = reading ? audit_reader_init(&reader, log_fd) : -ENOMEM;

	if (r < 0) {
		free(reading);
		return r;
	}
	reading->visits = visits;
	reading->context = context;
	reading->log = &log;
	while (r == 0) {
		const char *line;
		size_t size;
		int kind = audit_reader_next(&reader, &line, &size);

		if (kind < 0)
			r = kind;
		else if (kind == AUDIT_LINE_NONE || kind == AUDIT_LINE_PARTIAL)
			break;                 /* the last line of a log that still grows */
		else
			r = take_line(reading, (enum audit_line)kind, line, size);
	}
	free(reading);
	if (r == 0)
		*ret_log = log;
	return r;
}
