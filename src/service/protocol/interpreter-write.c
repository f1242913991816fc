/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"
#include "service/protocol/interpreter.h"
#include "service/protocol/value.h"

enum { RUNE_MAX = 4 };

static int put_piece(const char *bytes, size_t size, void *context)
{
	struct buf *out = context;

	buf_put(out, bytes, size);
	return buf_error(out) < 0 ? -1 : 0;
}

/* Consumes the value; NULL is a lack of memory, which the buffer tells then. */
static void put_value(struct buf *out, json_t *value)
{
	if (!value || json_dump_callback(value, put_piece, out, JSON_COMPACT | JSON_ENSURE_ASCII) < 0)
		out->error = out->error ? out->error : -ENOMEM;
	json_decref(value);
}

static void put_line(struct buf *out, json_t *value)
{
	put_value(out, value);
	buf_put_char(out, '\n');
}

/* ---- to the driver ---- */

void interpreter_put_run(struct buf *out, uint64_t number, const struct interpreter_request *request)
{
	json_t *env = request->env ? json_incref((json_t *)request->env) : json_object();

	put_line(out, json_pack("{s:I, s:s, s:s%, s:o}", "id", (json_int_t)number, "language",
				interpreter_language_name(request->language), "code", request->code,
				request->code_size, "env", env));
}

static void put_quoted(struct buf *out, const char *text)
{
	buf_put_char(out, '\'');
	for (; *text; text++)
		if (*text == '\'')
			buf_put_text(out, "'\\''");
		else
			buf_put_char(out, *text);
	buf_put_char(out, '\'');
}

/*
 * NUMBER, the code, and NAME=value of each variable, as quoted words behind one another: an array for eval. A NUL ends
 * it, since words have newlines.
 */
void interpreter_put_shell_run(struct buf *out, uint64_t number, const struct interpreter_request *request)
{
	const char *name;
	json_t *value;

	buf_printf(out, "%llu ", (unsigned long long)number);
	put_quoted(out, request->code);
	json_object_foreach((json_t *)request->env, name, value) {
		char *word = str_printf("%s=%s", name, json_string_value(value));

		buf_put_char(out, ' ');
		put_quoted(out, word ? word : "");
		free(word);
	}
	buf_put_char(out, 0);
}

static void put_size(struct buf *out, size_t size)
{
	buf_printf(out, " %zu", size);
}

/* NUMBER, the code, and NAME=value of each variable. */
void interpreter_put_counted_run(struct buf *out, uint64_t number, const struct interpreter_request *request)
{
	char digits[24];
	const char *name;
	json_t *value;

	(void)!str_format(digits, sizeof digits, "%llu", (unsigned long long)number);
	buf_printf(out, "%zu", strlen(digits));
	put_size(out, request->code_size);
	json_object_foreach((json_t *)request->env, name, value)
		put_size(out, strlen(name) + 1 + json_string_length(value));
	buf_printf(out, "\n%s", digits);
	buf_put(out, request->code, request->code_size);
	json_object_foreach((json_t *)request->env, name, value) {
		buf_put_text(out, name);
		buf_put_char(out, '=');
		buf_put(out, json_string_value(value), json_string_length(value));
	}
}

/* ---- from the driver ---- */

static const char *const kinds[] = { "result", "error", "number_of_executions", NULL };

/* 'abc' and "abc" are shown without their quotes. */
static void unquote(json_t *line)
{
	const json_t *text = json_object_get(line, "text");
	const char *value = json_string_value(text);
	size_t size = json_string_length(text);

	if (size >= 2 && (value[0] == '\'' || value[0] == '"') && value[size - 1] == value[0])
		(void)json_object_set_new(line, "text", json_stringn(value + 1, size - 2));
}

/* What clients take for granted. */
static bool is_fit(const json_t *line, const char *type)
{
	if (str_equal(type, "error"))
		return json_is_string(json_object_get(line, "name")) &&
		       json_is_string(json_object_get(line, "value")) &&
		       json_is_string(json_object_get(line, "traceback"));
	if (str_equal(type, "number_of_executions"))
		return json_is_integer(json_object_get(line, "execution_count"));
	return json_is_boolean(json_object_get(line, "is_main_result"));
}

int interpreter_read_line(const void *line, size_t size, uint64_t number, struct buf *out)
{
	char why[VALUE_WHY_SIZE];
	const char *type;
	json_t *value;
	int r = value_parse(line, size, &value, why);

	if (r < 0)
		return r == -ENOMEM ? r : -EBADMSG;
	type = json_string_value(json_object_get(value, "type"));
	r = -EBADMSG;
	if (str_equal(type, "missing")) {
		r = INTERPRETER_MISSING;
	} else if (json_integer_value(json_object_get(value, "id")) != (json_int_t)number) {
		r = INTERPRETER_IGNORED;
	} else if (str_equal(type, "end")) {
		r = INTERPRETER_ENDED;
	} else if (type && strv_has(kinds, type) && is_fit(value, type)) {
		(void)json_object_del(value, "id");
		unquote(value);
		put_line(out, json_incref(value));
		r = INTERPRETER_SAID;
	}
	json_decref(value);
	return r;
}

/* ---- to the client ---- */

/* Whether these bytes could become a character if more came. */
static bool is_incomplete(const uint8_t *bytes, size_t size)
{
	static const uint8_t tail[] = { 0x80, 0x80, 0x80 };
	uint8_t trial[RUNE_MAX + sizeof tail];
	uint32_t rune;

	if (size >= RUNE_MAX || bytes[0] < 0xc2)
		return false;
	for (size_t more = 1; size + more <= RUNE_MAX; more++) {
		/* The second byte of some has a smaller range: 0x9f and 0xa0 stand in all that there are. */
		for (unsigned second = 0x80; second <= 0xbf; second += 0x10) {
			memcpy(trial, bytes, size);
			memcpy(trial + size, tail, more);
			if (size == 1)
				trial[1] = (uint8_t)second;
			if (utf8_decode(trial, size + more, &rune) == size + more)
				return true;
		}
	}
	return false;
}

size_t interpreter_put_output(struct buf *out, bool is_error, const void *bytes, size_t size, uint64_t time_us,
			      bool is_last)
{
	static const char unknown[] = "\xef\xbf\xbd";
	const uint8_t *at = bytes, *end = at + size;
	cleanup_buf struct buf text;
	uint32_t rune;

	buf_init(&text, size * strlen(unknown) + 1);
	while (at < end) {
		size_t length = utf8_decode(at, (size_t)(end - at), &rune);

		if (!length && !is_last && is_incomplete(at, (size_t)(end - at)))
			break;
		buf_put(&text, length ? (const char *)at : unknown, length ? length : strlen(unknown));
		at += length ? length : 1;
	}
	if (text.size)
		put_line(out, json_pack("{s:s, s:s%, s:I}", "type", is_error ? "stderr" : "stdout", "text", text.bytes,
					text.size, "timestamp", (json_int_t)time_us));
	return (size_t)(at - (const uint8_t *)bytes);
}

void interpreter_put_error(struct buf *out, const char *name, const char *value)
{
	put_line(out, json_pack("{s:s, s:s, s:s, s:s}", "type", "error", "name", name, "value", value, "traceback",
				""));
}

void interpreter_put_keepalive(struct buf *out)
{
	buf_put_text(out, "{\"type\":\"keepalive\"}\n");
}

void interpreter_put_end(struct buf *out)
{
	buf_put_text(out, "{\"type\":\"end_of_execution\"}\n");
}

void interpreter_put_context(struct buf *out, const char *id, enum interpreter_language language, const char *cwd)
{
	put_value(out, json_pack("{s:s, s:s, s:s}", "id", id, "language", interpreter_language_name(language), "cwd",
				 cwd));
}
