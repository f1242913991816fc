/* SPDX-License-Identifier: Apache-2.0 */
#include "token/right.h"

#include <limits.h>
#include <string.h>

#include "base/names.h"
#include "base/num.h"
#include "base/str.h"

const char *const token_kind_names[TOKEN_KIND_END] = {
	[0] = "", [TOKEN_FILE_READ] = "file.read", [TOKEN_FILE_WRITE] = "file.write", [TOKEN_EXEC] = "exec",
	[TOKEN_NET_CONNECT] = "net.connect", [TOKEN_HTTP_REQUEST] = "http.request", [TOKEN_TRUST] = "trust",
};

const char *const token_limit_names[TOKEN_LIMIT_COUNT] = {
	[TOKEN_MEMORY] = "memory", [TOKEN_PROCESSES] = "processes", [TOKEN_DISK] = "disk", [TOKEN_WALL_MS] = "wall",
	[TOKEN_CPU_MS] = "cpu", [TOKEN_NET_BYTES] = "network",
};

static const enum action_kind actions[TOKEN_KIND_END] = {
	[TOKEN_FILE_READ] = ACTION_FILE_READ, [TOKEN_FILE_WRITE] = ACTION_FILE_WRITE, [TOKEN_EXEC] = ACTION_EXEC,
	[TOKEN_NET_CONNECT] = ACTION_NET_CONNECT, [TOKEN_HTTP_REQUEST] = ACTION_HTTP_REQUEST,
};

static const char any_below[] = "/**", any_host[] = "*.", pattern_bytes[] = "*?[]\\";

static bool is_network(enum token_kind kind)
{
	return kind == TOKEN_NET_CONNECT || kind == TOKEN_HTTP_REQUEST;
}

bool token_right_is_grant(const struct token_right *right)
{
	return right->kind != TOKEN_TRUST;
}

enum trust_level token_right_level(const struct token_right *right)
{
	int level = right->kind == TOKEN_TRUST ? names_find(trust_level_names, TRUST_COUNT, right->subject) : -1;

	return level < 0 ? TRUST_NONE : (enum trust_level)level;
}

/* ---- whether it is well formed ---- */

static bool is_path(const char *path)
{
	char normal[PATH_MAX];

	return path_normalise(normal, sizeof normal, path) == 0 && str_equal(normal, path);
}

/* A name or the text of an address; nothing in it that glob_match() would take for more than itself. */
static bool is_host(const char *host)
{
	if (str_has_prefix(host, any_host))
		host += sizeof any_host - 1;
	return *host && *host != '.' && strlen(host) <= 253 && !strstr(host, "..") &&
	       strspn(host, "abcdefghijklmnopqrstuvwxyz0123456789.-_:") == strlen(host);
}

static bool is_method(const char *method)
{
	return *method && strlen(method) <= 32 && strspn(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") == strlen(method);
}

/* "/v1/models", or all below: "/v1/" and two stars. */
static bool is_request_path(const char *path)
{
	char plain[TOKEN_STRING_MAX];

	if (str_copy(plain, sizeof plain, path) < 0)
		return false;
	if (str_has_suffix(plain, any_below))
		plain[strlen(plain) - strlen(any_below)] = 0;
	if (!*plain)
		return *path != 0;
	return !strpbrk(plain, pattern_bytes) && is_path(plain);
}

bool token_right_is_valid(const struct token_right *right)
{
	bool is_http = right->kind == TOKEN_HTTP_REQUEST;

	if ((unsigned)right->kind >= TOKEN_KIND_END || !right->kind || !right->subject)
		return false;
	if (right->word_count && right->kind != TOKEN_EXEC)
		return false;
	if (!is_http && (right->method || right->path))
		return false;
	if ((right->method && !is_method(right->method)) || (right->path && !is_request_path(right->path)))
		return false;
	/* "none" would be no right. */
	if (right->kind == TOKEN_TRUST)
		return !right->is_below && !right->port && token_right_level(right) > TRUST_NONE;
	if (is_network(right->kind))
		return !right->is_below && is_host(right->subject);
	return !right->port && is_path(right->subject);
}

/* ---- whether it is within another ---- */

static bool contains_host(const char *outer, const char *inner)
{
	if (str_equal(outer, inner))
		return true;
	/* "*.example.org" has every name that ends with ".example.org", and every such pattern. */
	return str_has_prefix(outer, any_host) && str_has_suffix(inner, outer + 1) && strlen(inner) > strlen(outer + 1);
}

static bool contains_request_path(const char *outer, const char *inner)
{
	size_t length;

	if (!outer || (inner && str_equal(outer, inner)))
		return true;
	if (!inner || !str_has_suffix(outer, any_below))
		return false;
	length = strlen(outer) - strlen("**");
	return strncmp(inner, outer, length) == 0 && inner[length];
}

static bool contains_words(const struct token_right *outer, const struct token_right *inner)
{
	if (!outer->word_count)
		return true;
	if (outer->word_count != inner->word_count)
		return false;
	for (size_t i = 0; i < outer->word_count; i++)
		if (!str_equal(outer->words[i], inner->words[i]))
			return false;
	return true;
}

static bool contains_subject(const struct token_right *outer, const struct token_right *inner)
{
	if (outer->kind == TOKEN_TRUST)
		return token_right_level(inner) <= token_right_level(outer);
	if (is_network(outer->kind))
		return contains_host(outer->subject, inner->subject);
	if (outer->is_below)
		return path_is_below(inner->subject, outer->subject);
	return !inner->is_below && str_equal(outer->subject, inner->subject);
}

bool token_right_contains(const struct token_right *outer, const struct token_right *inner)
{
	/* Who may write may read. */
	bool is_kind = outer->kind == inner->kind ||
		       (outer->kind == TOKEN_FILE_WRITE && inner->kind == TOKEN_FILE_READ);

	return is_kind && contains_subject(outer, inner) && (!outer->port || outer->port == inner->port) &&
	       (!outer->method || (inner->method && str_equal(outer->method, inner->method))) &&
	       contains_request_path(outer->path, inner->path) && contains_words(outer, inner);
}

struct grant_terms token_right_terms(const struct token_right *right)
{
	bool has_pattern = is_network(right->kind) &&
			   (str_has_prefix(right->subject, any_host) ||
			    (right->path && str_has_suffix(right->path, any_below)));

	return (struct grant_terms){
		.kind = actions[right->kind],
		.flags = (right->is_below ? GRANT_BELOW : 0) | (has_pattern ? GRANT_PATTERNS : 0),
		.subject = right->subject,
		.argv = right->word_count ? right->words : NULL,
		.method = right->method,
		.path = right->path,
		.port = right->port,
	};
}

/* ---- text ---- */

/* Cuts ":PORT" off; an address of IPv6 stands in brackets then. */
static int cut_port(char *host, uint16_t *ret_port)
{
	char *colon = strrchr(host, ':'), *close = strchr(host, ']');
	size_t length = strlen(host);
	uint64_t port;

	*ret_port = 0;
	if (colon && (!close || colon > close) && (close || strchr(host, ':') == colon)) {
		if (num_parse_u64(colon + 1, &port) < 0 || !port || port > UINT16_MAX)
			return -EINVAL;
		*ret_port = (uint16_t)port;
		*colon = 0;
		length = strlen(host);
	}
	if (*host != '[')
		return 0;
	if (host[length - 1] != ']')
		return -EINVAL;
	memmove(host, host + 1, length - 2);
	host[length - 2] = 0;
	return 0;
}

static int parse_path(char *text, struct token_right *right)
{
	right->is_below = str_has_suffix(text, any_below);
	if (right->is_below)
		text[strlen(text) - strlen(any_below)] = 0;
	right->subject = right->is_below && !*text ? "/" : text;
	return 0;
}

/* "PROGRAM", or "PROGRAM WORD…": called by its name, with just these words. */
static int parse_exec(char *text, struct token_right *right)
{
	char *at = strchr(text, ' ');

	if (at)
		*at++ = 0;
	parse_path(text, right);
	if (!at)
		return 0;
	right->words[right->word_count++] = path_basename(right->subject);
	for (char *word; (word = strsep(&at, " "));) {
		if (!*word)
			continue;
		if (right->word_count == TOKEN_WORDS_MAX)
			return -E2BIG;
		right->words[right->word_count++] = word;
	}
	return 0;
}

static int parse_connect(char *text, struct token_right *right)
{
	right->subject = text;
	return cut_port(text, &right->port);
}

/* "[METHOD ]HOST[:PORT][/PATH]": the path is moved behind its own NUL. */
static int parse_request(char *text, struct token_right *right)
{
	char *host = strchr(text, ' '), *slash;

	if (host) {
		*host++ = 0;
		right->method = text;
	} else {
		host = text;
	}
	slash = strchr(host, '/');
	if (slash) {
		memmove(slash + 1, slash, strlen(slash) + 1);
		*slash = 0;
		right->path = slash + 1;
	}
	right->subject = host;
	return cut_port(host, &right->port);
}

static int parse_trust(char *text, struct token_right *right)
{
	right->subject = text;
	return 0;
}

static const char *forms_of(enum token_kind kind)
{
	if (kind == TOKEN_TRUST)
		return "write a trust level: low, medium, high or full";
	if (is_network(kind))
		return "write HOST[:PORT], for requests [METHOD ]HOST[:PORT][/PATH]; host names in lower case, *.NAME "
		       "for all below a name, /** at the end of a path for all below it";
	return "write an absolute path without . and .., with /** at its end for all below it";
}

int token_right_parse(const char *text, struct token_right_room *room, struct token_right *ret_right,
		      const char **ret_problem)
{
	static int (*const parsers[TOKEN_KIND_END])(char *, struct token_right *) = {
		[TOKEN_FILE_READ] = parse_path, [TOKEN_FILE_WRITE] = parse_path, [TOKEN_EXEC] = parse_exec,
		[TOKEN_NET_CONNECT] = parse_connect, [TOKEN_HTTP_REQUEST] = parse_request,
		[TOKEN_TRUST] = parse_trust,
	};
	const char *equals = strchr(text, '=');
	char kind[32] = "";
	struct token_right right = { 0 };
	int found;

	if (equals)
		(void)!str_format(kind, sizeof kind, "%.*s", (int)(equals - text), text);
	found = *kind ? names_find(token_kind_names, TOKEN_KIND_END, kind) : -1;
	*ret_problem = "it is not KIND=SUBJECT with file.read, file.write, exec, net.connect, http.request or trust";
	if (found <= 0)
		return -EINVAL;
	*ret_problem = "it is too long";
	/* The last byte is for what parse_request() moves. */
	if (str_copy(room->text, sizeof room->text - 1, equals + 1) < 0)
		return -EINVAL;
	right.kind = (enum token_kind)found;
	*ret_problem = forms_of(right.kind);
	if (parsers[found](room->text, &right) < 0 || !token_right_is_valid(&right))
		return -EINVAL;
	*ret_right = right;
	return 0;
}

void token_right_format(const struct token_right *right, struct buf *out)
{
	bool is_bracketed = is_network(right->kind) && strchr(right->subject, ':');

	buf_printf(out, "%s=", token_kind_names[right->kind]);
	if (right->method)
		buf_printf(out, "%s ", right->method);
	buf_printf(out, is_bracketed ? "[%s]" : "%s", right->is_below && str_equal(right->subject, "/") ? "" :
		   right->subject);
	if (right->is_below)
		buf_put_text(out, any_below);
	if (right->port)
		buf_printf(out, ":%u", right->port);
	if (right->path)
		buf_put_text(out, right->path);
	for (size_t i = 1; i < right->word_count; i++)
		buf_printf(out, " %s", right->words[i]);
}
