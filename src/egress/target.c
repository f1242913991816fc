/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/target.h"

#include <string.h>
#include <strings.h>

#include "base/num.h"
#include "base/str.h"

/* Escapes of escapes: %252e is %2e to who decodes once and a dot to who decodes twice. Nobody needs more. */
enum { DECODE_ROUNDS_MAX = 4 };

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte of the escape at text, or -1. */
static int escape_at(const char *text)
{
	int high, low;

	if (text[0] != '%' || (high = digit_of(text[1])) < 0 || (low = digit_of(text[2])) < 0)
		return -1;
	return high << 4 | low;
}

/* What means the same escaped and not: everything but delimiters, % itself, \ and control bytes. */
static bool is_free(int byte)
{
	return byte > 0x20 - 1 && byte != 0x7f && !strchr(":/?#[]@!$&'()*+,;=%\\", byte);
}

static const char *check_path(const char *path, size_t size)
{
	if (size == 0 || path[0] != '/')
		return "the target is neither a path nor a URL of this server";
	for (size_t i = 0; i < size; i++) {
		int escaped = escape_at(path + i);

		if (path[i] == '%' && escaped < 0)
			return "the path has a % that begins no escape";
		if (path[i] == '%' && (escaped < 0x20 || escaped == 0x7f))
			return "the path has an escaped control character";
		if ((unsigned char)path[i] <= 0x20 || path[i] == 0x7f || path[i] == '#')
			return "the path has a character that no path has";
	}
	return NULL;
}

/* The first form; out has room for as much as comes in. */
static void put_free(const char *path, size_t size, char *out)
{
	static const char hex[] = "0123456789ABCDEF";

	for (size_t i = 0; i < size; i++) {
		int byte = escape_at(path + i);

		if (byte < 0) {
			*out++ = path[i];
			continue;
		}
		if (is_free(byte)) {
			*out++ = (char)byte;
		} else {
			*out++ = '%';
			*out++ = hex[byte >> 4];
			*out++ = hex[byte & 15];
		}
		i += 2;
	}
	*out = 0;
}

/* A slash or dot in more bytes than it needs (RFC 3629 10), which some decoders take for one. */
static bool is_overlong(const char *text)
{
	unsigned char first = (unsigned char)text[0], second = (unsigned char)text[1];

	return first == 0xc0 || first == 0xc1 || (first == 0xe0 && second >= 0x80 && second < 0xa0) ||
	       (first == 0xf0 && second >= 0x80 && second < 0x90);
}

/*
 * Undoes escapes in place, again and again. False when some are still there in the end, or when a NUL or an overlong
 * character comes out.
 */
static bool undo_escapes(char *path)
{
	for (int round = 0; round < DECODE_ROUNDS_MAX; round++) {
		char *to = path;
		bool found = false;

		for (const char *from = path; *from; from++) {
			int byte = escape_at(from);

			if (byte == 0 || is_overlong(from))
				return false;
			found = found || byte > 0;
			*to++ = byte > 0 ? (char)byte : *from;
			from += byte > 0 ? 2 : 0;
		}
		*to = 0;
		if (!found)
			return true;
	}
	return false;
}

/* Removes what stands between a ; and the next slash (RFC 3986 3.3: parameters, which some servers drop). */
static void drop_parameters(char *path)
{
	char *to = path;
	bool dropping = false;

	for (const char *from = path; *from; from++) {
		if (*from == '/')
			dropping = false;
		else if (*from == ';')
			dropping = true;
		if (!dropping)
			*to++ = *from;
	}
	*to = 0;
}

/* Dot segments and double slashes, in place; a final slash stays, and one follows where a dot segment was last. */
static void collapse(char *path)
{
	const char *from = path;
	char *to = path;

	while (*from) {
		size_t length;

		while (*from == '/')
			from++;
		length = strcspn(from, "/");
		if (length == 2 && from[0] == '.' && from[1] == '.') {
			while (to > path && *--to != '/')
				;
		} else if (length && !(length == 1 && from[0] == '.')) {
			*to++ = '/';
			memmove(to, from, length);
			to += length;
			if (!from[length])
				break;
		}
		from += length;
		if (!*from)
			*to++ = '/';
	}
	if (to == path)
		*to++ = '/';
	*to = 0;
}

static int add_form(struct target *target, const char *text)
{
	for (size_t i = 0; i < target->form_count; i++)
		if (str_equal(target->forms[i], text))
			return 0;
	target->forms[target->form_count] = str_dup(text);
	return target->forms[target->form_count++] ? 0 : -ENOMEM;
}

static int make_forms(struct target *target, const char *path, size_t size, const char **ret_problem)
{
	cleanup_free char *form = malloc(size + 1);
	int r;

	if (!form)
		return -ENOMEM;
	put_free(path, size, form);
	r = add_form(target, form);
	if (r < 0)
		return r;
	collapse(form);
	r = add_form(target, form);
	if (r < 0)
		return r;
	/* From the path as it came: what collapse() took away may mean something else to who decodes first. */
	put_free(path, size, form);
	if (!undo_escapes(form)) {
		*ret_problem = "the path is escaped several times over, or hides a character";
		return -EBADMSG;
	}
	for (char *at = form; *at; at++)
		if (*at == '\\')
			*at = '/';
	drop_parameters(form);
	collapse(form);
	return add_form(target, form);
}

bool target_host_is(const char *authority, const struct target_server *server)
{
	const char *colon = strrchr(authority, ':'), *bracket = strchr(authority, ']');
	const char *host = authority;
	size_t size;
	uint64_t port = server->is_tls ? 443 : 80;

	if (colon && bracket && colon < bracket)
		colon = NULL;
	if (colon && (strlen(colon + 1) > 5 || num_parse_u64(colon + 1, &port) < 0))
		return false;
	size = colon ? (size_t)(colon - host) : strlen(host);
	if (size >= 2 && host[0] == '[' && host[size - 1] == ']') {
		host++;
		size -= 2;
	}
	/* "example.org." is the same host by DNS, but not to every server: refused rather than guessed. */
	return port == server->port && size == strlen(server->host) && strncasecmp(host, server->host, size) == 0;
}

/* The part of an absolute-form behind the authority, or NULL. */
static const char *skip_authority(const char *text, const struct target_server *server)
{
	const char *scheme = server->is_tls ? "https://" : "http://";
	char authority[300];
	size_t size;

	if (strncasecmp(text, scheme, strlen(scheme)) != 0)
		return NULL;
	text += strlen(scheme);
	size = strcspn(text, "/?#");
	if (size >= sizeof authority)
		return NULL;
	memcpy(authority, text, size);
	authority[size] = 0;
	return target_host_is(authority, server) ? text + size : NULL;
}

int target_parse(const char *method, const char *text, const struct target_server *server, struct target *ret_target,
		 const char **ret_problem)
{
	struct target target = { .origin = text };
	size_t size;
	int r;

	if (str_equal(text, "*") && str_equal(method, "OPTIONS")) {
		r = add_form(&target, text);
		*ret_target = target;
		return r;
	}
	if (text[0] != '/') {
		target.origin = skip_authority(text, server);
		if (target.origin && !*target.origin)
			target.origin = "/";
	}
	size = target.origin ? strcspn(target.origin, "?") : 0;
	if (size >= TARGET_PATH_SIZE) {
		*ret_problem = "the path is too long";
		return -ENAMETOOLONG;
	}
	*ret_problem = check_path(target.origin, size);
	if (!*ret_problem && strchr(target.origin + size, '#'))
		*ret_problem = "the target has a fragment";
	if (*ret_problem)
		return -EBADMSG;
	r = make_forms(&target, target.origin, size, ret_problem);
	if (r < 0)
		target_done(&target);
	else
		*ret_target = target;
	return r;
}

void target_done(struct target *target)
{
	for (size_t i = 0; i < target->form_count; i++)
		free(target->forms[i]);
	target->form_count = 0;
}

struct decision target_judge(const struct target *target, const struct policy *policy, const char *method,
			     const struct target_server *server, const char **ret_form)
{
	struct action action = { .kind = ACTION_HTTP_REQUEST, .subject = server->host, .port = server->port,
				 .method = method, .path = target->forms[0] };
	struct decision strictest = policy_decide(policy, &action);

	*ret_form = action.path;
	for (size_t i = 1; i < target->form_count; i++) {
		struct decision decision;

		action.path = target->forms[i];
		decision = policy_decide(policy, &action);
		if (decision.verdict >= strictest.verdict)
			continue;
		strictest = decision;
		*ret_form = action.path;
	}
	return strictest;
}
