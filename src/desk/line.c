/* SPDX-License-Identifier: Apache-2.0 */
#include "desk/line.h"

#include <ctype.h>
#include <jansson.h>
#include <string.h>

#include "base/str.h"
#include "policy/decide.h"

void line_prepare(void)
{
	json_object_seed(0);
}

static const struct {
	const char *name;
	enum action_kind kind;
} kinds[] = {
	{ "file.read", ACTION_FILE_READ },
	{ "file.write", ACTION_FILE_WRITE },
	{ "net.connect", ACTION_NET_CONNECT },
	{ "exec", ACTION_EXEC },
};

/* "host:port", or "[address]:port". */
static const char *split_host(struct line *line, const char *text)
{
	const char *colon = strrchr(text, ':'), *begin = text, *end = colon;
	unsigned long port = 0;

	if (!colon || !colon[1] || strspn(colon + 1, "0123456789") != strlen(colon + 1) || strlen(colon + 1) > 5)
		return "a host is named with its port: example.org:443";
	port = strtoul(colon + 1, NULL, 10);
	if (text[0] == '[' && colon[-1] == ']')
		begin++, end--;
	else if (memchr(text, ':', (size_t)(colon - text)))
		return "an IPv6 address is named in brackets: [2001:db8::1]:443";
	if (end > begin && end[-1] == '.')
		end--;
	if (!port || port > UINT16_MAX || end <= begin || (size_t)(end - begin) >= sizeof line->host)
		return "a host is named with its port: example.org:443";
	for (size_t i = 0; begin + i < end; i++) {
		if (!isalnum((unsigned char)begin[i]) && !strchr(begin > text ? ".:" : ".-_", begin[i]))
			return "a host is a name, or an address";
		line->host[i] = (char)tolower((unsigned char)begin[i]);
	}
	line->host[end - begin] = 0;
	line->want.subject = line->host;
	line->want.port = (uint32_t)port;
	return NULL;
}

/* ---- one function for each member; NULL, or why not ---- */

static const char *read_want(struct line *line, const json_t *value)
{
	const char *name = json_string_value(value);

	line->kind = LINE_WANT;
	for (size_t i = 0; name && i < ARRAY_SIZE(kinds); i++) {
		if (!str_equal(kinds[i].name, name))
			continue;
		line->want.kind = kinds[i].kind;
		return NULL;
	}
	return "\"want\" is one of file.read, file.write, net.connect, exec";
}

static const char *read_subject(struct line *line, const json_t *value)
{
	line->want.subject = json_string_value(value);
	if (!line->want.subject || !*line->want.subject || strlen(line->want.subject) >= DESK_SUBJECT_MAX)
		return "\"subject\" is a text of at most 4095 bytes";
	return NULL;
}

static const char *read_reason(struct line *line, const json_t *value)
{
	line->want.reason = json_string_value(value);
	if (!line->want.reason || strlen(line->want.reason) >= DESK_REASON_MAX)
		return "\"reason\" is a text of at most 1023 bytes";
	return NULL;
}

static const char *read_seconds(struct line *line, const json_t *value)
{
	json_int_t seconds = json_integer_value(value);

	if (!json_is_integer(value) || seconds < 1 || seconds > DESK_WAIT_MAX_MS / 1000)
		return "\"seconds\" is a number from 1 to 86400";
	line->want.wait_ms = (uint64_t)seconds * 1000;
	return NULL;
}

static const char *read_argv(struct line *line, const json_t *value)
{
	size_t count = json_array_size(value);

	if (!json_is_array(value) || !count || count > DESK_ARGV_MAX)
		return "\"argv\" is a list of at most 64 texts";
	for (size_t i = 0; i < count; i++) {
		line->argv[i] = (char *)json_string_value(json_array_get(value, i));
		if (!line->argv[i])
			return "\"argv\" is a list of at most 64 texts";
	}
	line->want.argv = line->argv;
	return NULL;
}

static const char *read_tag(struct line *line, const json_t *value)
{
	line->tag = json_string_value(value);
	return line->tag && strlen(line->tag) < LINE_TAG_MAX ? NULL : "\"tag\" is a text of at most 63 bytes";
}

static const char *read_reply(struct line *line, const json_t *value)
{
	const char *name = json_string_value(value);

	line->is_text = str_equal(name, "text");
	return line->is_text || str_equal(name, "json") ? NULL : "\"reply\" is \"text\" or \"json\"";
}

static const char *read_wait(struct line *line, const json_t *value)
{
	json_int_t number = json_integer_value(value);

	line->kind = LINE_WAIT;
	if (!json_is_integer(value) || number < 1 || number > UINT32_MAX)
		return "\"wait\" is the number of a question";
	line->question = (uint32_t)number;
	return NULL;
}

static const char *read_status(struct line *line, const json_t *value)
{
	line->kind = LINE_STATUS;
	return json_is_true(value) ? NULL : "\"status\" is true";
}

static const char *read_token(struct line *line, const json_t *value)
{
	static const char alphabet[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

	line->kind = LINE_TOKEN;
	line->token = json_string_value(value);
	/* What it says, another program reads: atoll-token. */
	if (!line->token || !*line->token || strspn(line->token, alphabet) != strlen(line->token))
		return "\"token\" is the text of a token: it begins with atoll1.";
	return NULL;
}

static const char *read_checkpoint(struct line *line, const json_t *value)
{
	line->kind = LINE_CHECKPOINT;
	line->checkpoint = json_string_value(value);
	return line->checkpoint && strlen(line->checkpoint) < DESK_REASON_MAX
		       ? NULL
		       : "\"checkpoint\" is a text of at most 1023 bytes";
}

struct member {
	const char *name;
	const char *(*read)(struct line *line, const json_t *value);
	bool begins;         /* says what the line is: exactly one of them */
};

static const char *read_explain(struct line *line, const json_t *value);

static const struct member explained[] = {
	{ "want", read_want, true }, { "subject", read_subject, false }, { "argv", read_argv, false },
};

static const struct member members[] = {
	{ "want", read_want, true },	   { "explain", read_explain, true },  { "wait", read_wait, true },
	{ "status", read_status, true },   { "subject", read_subject, false }, { "reason", read_reason, false },
	{ "seconds", read_seconds, false }, { "argv", read_argv, false },	{ "tag", read_tag, false },
	{ "reply", read_reply, false },	{ "token", read_token, true },
	{ "checkpoint", read_checkpoint, true },
};

static const struct member *find_member(const struct member *table, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (str_equal(table[i].name, name))
			return &table[i];
	return NULL;
}

static const char *read_members(struct line *line, const json_t *object, const struct member *table, size_t count)
{
	unsigned beginnings = 0;
	const char *name, *why;
	json_t *value;

	if (!json_is_object(object))
		return "this is no JSON object";
	json_object_foreach((json_t *)object, name, value) {
		const struct member *member = find_member(table, count, name);

		if (!member)
			return "there is a member that is not known: see /run/atoll/limits.md";
		why = member->read(line, value);
		if (why)
			return why;
		beginnings += member->begins;
	}
	return beginnings == 1 ? NULL :
		"one of \"want\", \"explain\", \"wait\", \"status\", \"token\", \"checkpoint\" is needed";
}

static const char *read_explain(struct line *line, const json_t *value)
{
	const char *why = read_members(line, value, explained, ARRAY_SIZE(explained));

	line->kind = LINE_EXPLAIN;
	return why;
}

static const char *check(struct line *line)
{
	bool is_about = line->kind == LINE_WANT || line->kind == LINE_EXPLAIN;

	if (is_about != (line->want.subject != NULL))
		return is_about ? "\"subject\" is missing" : "\"subject\" has no meaning here";
	if (is_about && line->want.kind == ACTION_NET_CONNECT)
		return split_host(line, line->want.subject);
	if (is_about && line->want.subject[0] != '/')
		return "a path is absolute";
	return line->want.argv && line->want.kind != ACTION_EXEC ? "\"argv\" is for exec" : NULL;
}

int line_parse(const char *bytes, size_t size, struct line *ret_line, const char **ret_why)
{
	json_error_t error;
	const char *why;
	json_t *root = json_loadb(bytes, size, JSON_REJECT_DUPLICATES, &error);

	*ret_line = (struct line){ .root = root };
	why = root ? read_members(ret_line, root, members, ARRAY_SIZE(members)) : "this is no JSON object";
	/* Members come in any order, "explain" among them. */
	if (!why)
		why = check(ret_line);
	if (!why)
		return 0;
	line_done(ret_line);
	*ret_why = why;
	return -EINVAL;
}

void line_done(struct line *line)
{
	json_decref(line->root);
	line->root = NULL;
}
