/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-log/entry.h"

#include <jansson.h>
#include <sodium/utils.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "base/utf8.h"

enum { PROGRAM_MAX = 15, TYPE_WIDTH = 14, VERDICT_WIDTH = 8, PID_WIDTH = 7, B64_MAX = 64 << 10 };

void entry_init(void)
{
	tzset();
	json_object_seed(0);
}

struct json_t *entry_parse(const char *line, size_t size)
{
	json_t *entry = json_loadb(line, size, JSON_ALLOW_NUL, NULL);

	if (json_is_object(entry))
		return entry;
	json_decref(entry);
	return NULL;
}

static const char *text_of(const json_t *entry, const char *key)
{
	const char *text = json_string_value(json_object_get(entry, key));

	return text ? text : "";
}

static bool type_matches(const char *type, const char *wanted)
{
	size_t length = strlen(wanted);

	return strncmp(type, wanted, length) == 0 && (type[length] == 0 || type[length] == '.');
}

bool entry_matches(const json_t *entry, const struct entry_filter *filter)
{
	bool has_type = !filter->types->count;

	for (size_t i = 0; i < filter->types->count && !has_type; i++)
		has_type = type_matches(text_of(entry, "type"), filter->types->values[i]);
	if (!has_type || (filter->denied_only && !str_equal(text_of(entry, "verdict"), "deny")))
		return false;
	/* All times are UTC in one form, so their order is that of their text. */
	return !filter->since || strcmp(text_of(entry, "ts"), filter->since) >= 0;
}

/* The bytes of a string, or of {"b64": …} in scratch[B64_MAX]; NULL for anything else. */
static const char *bytes_of(const json_t *value, char *scratch, size_t *ret_size)
{
	const json_t *b64 = json_object_get(value, "b64");

	*ret_size = json_string_length(value);
	if (json_is_string(value))
		return json_string_value(value);
	if (!json_is_string(b64) ||
	    sodium_base642bin((uint8_t *)scratch, B64_MAX, json_string_value(b64), json_string_length(b64), NULL,
			      ret_size, NULL, sodium_base64_VARIANT_ORIGINAL) != 0)
		return NULL;
	return scratch;
}

static void put_value(struct buf *out, const json_t *value)
{
	char scratch[B64_MAX];
	size_t size;
	const char *bytes = bytes_of(value, scratch, &size);

	if (bytes)
		buf_put_escaped(out, bytes, size, 0);
}

static size_t width_of(const uint8_t *bytes, size_t size)
{
	size_t width = 0;

	for (size_t i = 0; i < size; i++)
		width += (bytes[i] & 0xc0) != 0x80;
	return width;
}

/* What was put since start, filled up to width columns, and one blank. */
static void pad(struct buf *out, size_t start, size_t width)
{
	size_t used = width_of(out->bytes + start, out->size - start);

	for (; used < width; used++)
		buf_put_char(out, ' ');
	buf_put_char(out, ' ');
}

static void put_field(struct buf *out, const char *text, size_t max, size_t width)
{
	size_t start = out->size;

	buf_put_escaped(out, text, strlen(text), max);
	pad(out, start, width);
}

static void put_program(struct buf *out, const json_t *exe)
{
	char scratch[B64_MAX];
	size_t size, start = out->size;
	const char *bytes = bytes_of(exe, scratch, &size);
	const char *slash = bytes ? memrchr(bytes, '/', size) : NULL;

	if (slash) {
		size -= (size_t)(slash + 1 - bytes);
		bytes = slash + 1;
	}
	if (bytes)
		buf_put_escaped(out, bytes, size, PROGRAM_MAX);
	else
		buf_put_char(out, '-');
	pad(out, start, PROGRAM_MAX);
}

/* The local time to the millisecond; as it stands where it is none. */
static void put_time(struct buf *out, const char *text)
{
	struct tm tm = { 0 }, local;
	char shown[32];
	int used = 0;
	time_t seconds;

	if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d.%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min,
		   &tm.tm_sec, &used) != 6 || used != 20 || strlen(text) != 30) {
		put_field(out, text, 23, 23);
		return;
	}
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	seconds = timegm(&tm);
	if (!localtime_r(&seconds, &local) || !strftime(shown, sizeof shown, "%Y-%m-%d %H:%M:%S", &local))
		return;
	buf_printf(out, "%s.%.3s ", shown, text + 20);
}

static void put_arguments(struct buf *out, const json_t *argv)
{
	for (size_t i = 0; i < json_array_size(argv); i++) {
		if (i)
			buf_put_char(out, ' ');
		put_value(out, json_array_get(argv, i));
	}
}

/* A blank between what stands behind start and what follows. */
static void separate(struct buf *out, size_t start)
{
	if (out->size > start)
		buf_put_char(out, ' ');
}

/* The few members of "detail" that tell how a thing ended. */
static void put_outcome(struct buf *out, size_t start, const json_t *detail)
{
	static const char *const numbers[] = { "exit", "signal", "errno", "status", "limit", "added", "modified",
					       "deleted", "dropped", "left" };
	const char *ended = text_of(detail, "ended"), *phase = text_of(detail, "phase");

	if (*ended) {
		separate(out, start);
		buf_put_text(out, "ended: ");
		buf_put_escaped(out, ended, strlen(ended), 32);
	}
	separate(out, *phase ? start : out->size);
	buf_put_escaped(out, phase, strlen(phase), 32);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		const json_t *value = json_object_get(detail, numbers[i]);

		if (!json_is_integer(value))
			continue;
		separate(out, start);
		buf_printf(out, "%s: %lld", numbers[i], (long long)json_integer_value(value));
	}
	if (json_is_true(json_object_get(detail, "cut")))
		buf_put_text(out, " (cut)");
}

/* "GET example.org", and behind the port "/v1/models 200"; for what is not HTTP nothing. */
static void put_method(struct buf *out, const json_t *detail)
{
	const char *method = text_of(detail, "method");

	buf_put_escaped(out, method, strlen(method), 32);
	if (*method)
		buf_put_char(out, ' ');
}

static void put_path(struct buf *out, const json_t *detail)
{
	const json_t *path = json_object_get(detail, "path"), *status = json_object_get(detail, "status");

	if (!path)
		return;
	put_value(out, path);
	if (json_is_integer(status))
		buf_printf(out, " %lld", (long long)json_integer_value(status));
}

/* What a connection was about: ":443 203.0.113.7 in 377 out 77 2 ms", as far as the record has it. */
static void put_connection(struct buf *out, const json_t *detail)
{
	static const struct {
		const char *key, *label;
	} sizes[] = { { "in_bytes", "in" }, { "out_bytes", "out" } };
	static const char *const texts[] = { "type", "address", "server_name", "error" };
	const json_t *port = json_object_get(detail, "port"), *time = json_object_get(detail, "wall_us");

	if (json_is_integer(port))
		buf_printf(out, ":%lld", (long long)json_integer_value(port));
	put_path(out, detail);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		const char *text = text_of(detail, texts[i]);

		if (*text)
			buf_put_char(out, ' ');
		buf_put_escaped(out, text, strlen(text), 200);
	}
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		const json_t *size = json_object_get(detail, sizes[i].key);

		if (json_is_integer(size))
			buf_printf(out, " %s %lld", sizes[i].label, (long long)json_integer_value(size));
	}
	if (json_is_integer(time))
		buf_printf(out, " %lld ms", (long long)json_integer_value(time) / 1000);
}

static long long number_of(const json_t *object, const char *key)
{
	return (long long)json_integer_value(json_object_get(object, key));
}

/* "500 deletes (usual 0, at most 3 in 12 sessions)", and what was new. */
static void put_evidence(struct buf *out, const json_t *evidence)
{
	const json_t *fresh = json_object_get(evidence, "new");
	const char *what = text_of(evidence, "what");

	buf_printf(out, "; %lld ", number_of(evidence, "number"));
	buf_put_escaped(out, what, strlen(what), 32);
	buf_printf(out, " (usual %lld, at most %lld in %lld sessions)", number_of(evidence, "usual"),
		   number_of(evidence, "most"), number_of(evidence, "sessions"));
	for (size_t i = 0; i < json_array_size(fresh); i++) {
		buf_put_text(out, i ? ", " : ": ");
		put_value(out, json_array_get(fresh, i));
	}
}

/* What an alert rests on: where a token turned up, or the numbers. */
static void put_alert(struct buf *out, const json_t *detail)
{
	static const char *const texts[] = { "alert", "where", "secret", "spelling", "host" };
	const json_t *evidence = json_object_get(detail, "evidence");
	const char *verdict = text_of(detail, "verdict");

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		const char *text = text_of(detail, texts[i]);

		if (*text)
			buf_put_text(out, i ? ", " : " ");
		buf_put_escaped(out, text, strlen(text), 200);
	}
	if (*text_of(detail, "host") && json_is_integer(json_object_get(detail, "port")))
		buf_printf(out, ":%lld", number_of(detail, "port"));
	if (*verdict)
		buf_put_text(out, str_equal(verdict, "deny") ? ", refused" : ", not refused");
	for (size_t i = 0; i < json_array_size(evidence); i++)
		put_evidence(out, json_array_get(evidence, i));
}

/* A session that has less than its policy, or asked for less and has all of it. */
static void put_narrowing(struct buf *out, const json_t *detail)
{
	const char *outcome = text_of(json_object_get(detail, "narrowing"), "outcome");

	if (!*outcome)
		return;
	buf_put_text(out, " (narrowing ");
	buf_put_escaped(out, outcome, strlen(outcome), 20);
	buf_put_char(out, ')');
}

/* What the verifier found about a command: the rule, how bad, how sure. */
static void put_findings(struct buf *out, const json_t *findings)
{
	static const char *const keys[] = { "id", "severity", "confidence" };

	for (size_t i = 0; i < json_array_size(findings); i++) {
		const json_t *finding = json_array_get(findings, i);

		for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
			const char *text = text_of(finding, keys[k]);

			if (*text)
				buf_put_text(out, k ? " " : i ? ", " : "; found: ");
			buf_put_escaped(out, text, strlen(text), 80);
		}
	}
}

/* The names of secrets that were put in, never a value. */
static void put_secrets(struct buf *out, const json_t *secrets)
{
	for (size_t i = 0; i < json_array_size(secrets); i++) {
		buf_put_text(out, i ? ", " : "; secret: ");
		put_value(out, json_array_get(secrets, i));
	}
}

static void put_subject(struct buf *out, const json_t *entry)
{
	const json_t *detail = json_object_get(entry, "detail");
	const json_t *argv = json_object_get(detail, "argv");
	bool is_http = type_matches(text_of(entry, "type"), "net.http");
	const char *host = json_is_integer(json_object_get(detail, "port")) ? text_of(entry, "subject") : "";
	size_t start = out->size;

	if (is_http)
		put_method(out, detail);
	buf_put_text(out, str_host_open(host));
	if (json_array_size(argv))
		put_arguments(out, argv);
	else
		put_value(out, json_object_get(entry, "subject"));
	buf_put_text(out, str_host_close(host));
	if (type_matches(text_of(entry, "type"), "net"))
		put_connection(out, detail);
	if (type_matches(text_of(entry, "type"), "alert"))
		put_alert(out, detail);
	put_narrowing(out, detail);
	/* Of a request the status stands before the bytes. */
	if (!json_object_get(detail, "path"))
		put_outcome(out, start, detail);
	put_findings(out, json_object_get(detail, "findings"));
	put_secrets(out, json_object_get(detail, "secrets"));
	if (*text_of(entry, "rule")) {
		buf_put_text(out, " [");
		buf_put_escaped(out, text_of(entry, "rule"), strlen(text_of(entry, "rule")), 200);
		buf_put_char(out, ']');
	}
}

static const char *colour_of(const char *verdict)
{
	if (str_equal(verdict, "deny"))
		return "\x1b[31m";
	return str_equal(verdict, "ask") ? "\x1b[33m" : "";
}

void entry_format(const json_t *entry, bool colour, struct buf *out)
{
	const char *verdict = text_of(entry, "verdict");
	const char *start = colour ? colour_of(verdict) : "";
	const json_t *pid = json_object_get(entry, "pid"), *exe = json_object_get(entry, "exe");
	bool is_exec = type_matches(text_of(entry, "type"), "exec");
	size_t at;

	put_time(out, text_of(entry, "ts"));
	put_field(out, text_of(entry, "type"), 24, TYPE_WIDTH);
	buf_put_text(out, start);
	put_field(out, *verdict ? verdict : "-", 16, VERDICT_WIDTH);
	buf_put_text(out, *start ? "\x1b[0m" : "");
	at = out->size;
	if (json_is_integer(pid))
		buf_printf(out, "%lld", (long long)json_integer_value(pid));
	else
		buf_put_char(out, '-');
	pad(out, at, PID_WIDTH);
	/* What an exec is about is the program that it becomes. */
	put_program(out, exe ? exe : is_exec ? json_object_get(entry, "subject") : NULL);
	put_subject(out, entry);
	while (out->size && out->bytes[out->size - 1] == ' ')
		out->size--;
	buf_put_char(out, '\n');
}

static bool is_safe(const char *line, size_t size)
{
	const uint8_t *at = (const uint8_t *)line;

	while (size) {
		uint32_t rune;
		size_t used = utf8_decode(at, size, &rune);

		if (!used || rune < 0x20 || rune == 0x7f || utf8_is_unsafe(rune))
			return false;
		at += used;
		size -= used;
	}
	return true;
}

void entry_format_json(const json_t *entry, const char *line, size_t size, struct buf *out)
{
	char *dumped;

	if (is_safe(line, size)) {
		buf_put(out, line, size);
	} else {
		dumped = json_dumps(entry, JSON_COMPACT | JSON_ENSURE_ASCII);
		buf_put_text(out, dumped ? dumped : "{}");
		free(dumped);
	}
	buf_put_char(out, '\n');
}
