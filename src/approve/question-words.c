/* SPDX-License-Identifier: Apache-2.0 */
#include "approve/question-words.h"

#include <string.h>

#include "base/num.h"
#include "policy/grants.h"

enum { NS_PER_MS = 1000000, SPACES_MAX = 8 };

const char *const asking_state_names[ASKING_STATE_COUNT] = {
	[ASKING_WAITS] = "waiting", [ASKING_LISTED] = "listed", [ASKING_ANSWERED] = "answered",
};

const char *const asking_scope_names[ASKING_SCOPE_COUNT] = {
	[ASKING_ONCE] = "once",	      [ASKING_USES] = "uses",	    [ASKING_TIME] = "time",
	[ASKING_SESSION] = "session", [ASKING_FOREVER] = "forever",
};

static void put(struct buf *out, const char *before, const char *text)
{
	if (!text)
		return;
	buf_put_text(out, before);
	buf_put_escaped(out, text, strlen(text), 0);
}

/* Up to a quote, or a space behind so many that they are no indentation. */
static size_t find_plain(const char *text, size_t *spaces)
{
	size_t length = 0;

	for (; text[length] && text[length] != '"'; length++) {
		*spaces = text[length] == ' ' ? *spaces + 1 : 0;
		if (*spaces > SPACES_MAX)
			break;
	}
	return length;
}

/*
 * In quotes that nothing inside can end; and with few spaces at a time, since many would set words to the beginning of
 * a terminal's next line.
 */
static void put_quoted(struct buf *out, const char *text)
{
	size_t spaces = 0;

	buf_put_char(out, '"');
	while (*text) {
		size_t plain = find_plain(text, &spaces);

		buf_put_escaped(out, text, plain, 0);
		text += plain;
		if (!*text)
			break;
		buf_put_text(out, *text == '"' ? "\\\"" : "\\x20");
		spaces = *text++ == '"' ? 0 : SPACES_MAX;
	}
	buf_put_char(out, '"');
}

/* In quotes where its end, or what it says, could be taken for words of ours. */
static void put_path(struct buf *out, const char *before, const char *path)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+@%=:~";

	if (!path)
		return;
	buf_put_text(out, before);
	if (*path && strspn(path, plain) == strlen(path))
		buf_put_text(out, path);
	else
		put_quoted(out, path);
}

static void put_command(struct buf *out, const struct asking_shown *shown)
{
	put_path(out, "run ", shown->subject);
	for (size_t i = 0; shown->argv && shown->argv[i]; i++) {
		buf_put_text(out, i ? " " : " as ");
		put_quoted(out, shown->argv[i]);
	}
	if (!shown->argv)
		buf_put_text(out, " with any arguments");
	put_path(out, " in ", shown->cwd);
	if (!shown->cwd)
		buf_put_text(out, " in any directory");
}

static void put_request(struct buf *out, const struct asking_shown *shown)
{
	put(out, "send ", shown->method);
	put(out, " to ", shown->subject);
	if (shown->port)
		buf_printf(out, ":%u", shown->port);
	put(out, "", shown->path);
	buf_put_text(out, ", with any query");
}

void question_words_put(struct buf *out, const struct asking_shown *shown)
{
	static const char *const beginnings[ACTION_KIND_COUNT] = {
		[ACTION_FILE_READ] = "read ",	     [ACTION_FILE_WRITE] = "write ",
		[ACTION_FILE_APPLY] = "apply ",	     [ACTION_NET_CONNECT] = "connect to ",
		[ACTION_NET_LISTEN] = "listen at ",  [ACTION_NET_DNS] = "look up ",
		[ACTION_DEVICE] = "use the device ", [ACTION_ENV] = "have the variable ",
		[ACTION_SYSCALL] = "call ",	     [ACTION_ALERT] = "go on after this alert: ",
	};

	if (shown->kind == ACTION_EXEC) {
		put_command(out, shown);
		return;
	}
	if (shown->kind == ACTION_HTTP_REQUEST) {
		put_request(out, shown);
		return;
	}
	if (shown->flags & GRANT_VIEW)
		buf_put_text(out, "have in view, to ");
	put_path(out, shown->kind < ACTION_KIND_COUNT ? beginnings[shown->kind] : "do ", shown->subject);
	if (shown->flags & GRANT_BELOW)
		buf_put_text(out, " and everything below it");
	if (shown->port)
		buf_printf(out, ", port %u", shown->port);
	else if (shown->kind == ACTION_NET_CONNECT)
		buf_put_text(out, ", any port");
}

static void put_who(struct buf *out, const struct asking_question *question, uint64_t now_ns)
{
	uint64_t age_ms = now_ns > question->asked_ns ? (now_ns - question->asked_ns) / NS_PER_MS : 0;
	char age[32], left[32];

	num_format_duration_human(age_ms, age);
	num_format_duration_human(question->left_ms, left);
	buf_put_text(out, "    ");
	if (question->shown.program)
		put_path(out, "by ", question->shown.program);
	else
		buf_put_text(out, "by a program");
	if (question->pid)
		buf_printf(out, " (pid %u)", question->pid);
	buf_printf(out, ", %s ago", age);
	if (question->state == ASKING_WAITS)
		buf_printf(out, ", %u waiting, refused in %s\n", question->waiting, left);
	else if (question->state == ASKING_LISTED)
		buf_printf(out, ", was refused%s\n", question->times > 1 ? " more than once" : "");
	else
		buf_printf(out, ", was %s\n", question->is_allowed ? "allowed" : "denied");
}

void question_words_put_question(struct buf *out, const struct asking_question *question, const char *name,
			       uint64_t now_ns)
{
	const struct asking_shown *shown = &question->shown;

	buf_printf(out, "%s  ", name);
	question_words_put(out, shown);
	buf_put_char(out, '\n');
	put_who(out, question, now_ns);
	put(out, "    because ", shown->why);
	put(out, " (", shown->rule);
	buf_put_text(out, ")\n");
	if (shown->flags & GRANT_OUTSIDE)
		buf_put_text(out, "    a yes adds it to the sandbox's view. There nobody counts what is opened: "
				  "\"once\", or a number of times, means 10 minutes\n");
	if (!shown->words)
		return;
	buf_put_text(out, "    the agent says (check it): ");
	put_quoted(out, shown->words);
	buf_put_char(out, '\n');
}

void question_words_put_scope(struct buf *out, enum asking_scope scope, uint64_t amount)
{
	char time[32];

	if (scope == ASKING_USES) {
		buf_printf(out, "%llu times", (unsigned long long)amount);
	} else if (scope == ASKING_TIME) {
		num_format_duration(amount, time);
		buf_printf(out, "for %s", time);
	} else {
		buf_put_text(out, scope == ASKING_SESSION ? "for this session"
				  : scope == ASKING_FOREVER ? "for ever" : "once");
	}
}

static void put_bytes(struct json *json, const char *key, const char *text)
{
	if (text)
		json_bytes(json, key, text, strlen(text));
	else
		json_null(json, key);
}

void question_words_to_json(struct json *json, const struct asking_shown *shown)
{
	json_string(json, "kind", shown->kind < ACTION_KIND_COUNT ? action_kind_names[shown->kind] : NULL);
	put_bytes(json, "subject", shown->subject);
	json_bool(json, "below", shown->flags & GRANT_BELOW);
	json_bool(json, "outside", shown->flags & GRANT_OUTSIDE);
	json_bool(json, "view", shown->flags & GRANT_VIEW);
	json_array_begin(json, "argv");
	for (size_t i = 0; shown->argv && shown->argv[i]; i++)
		put_bytes(json, NULL, shown->argv[i]);
	json_array_end(json);
	if (shown->port)
		json_u64(json, "port", shown->port);
	else
		json_null(json, "port");
	put_bytes(json, "method", shown->method);
	put_bytes(json, "path", shown->path);
	put_bytes(json, "program", shown->program);
	put_bytes(json, "cwd", shown->cwd);
	put_bytes(json, "rule", shown->rule);
	put_bytes(json, "reason", shown->why);
	put_bytes(json, "words", shown->words);
}
