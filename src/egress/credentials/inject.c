/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/credentials/inject.h"

#include <string.h>

#include "base/base64.h"
#include "base/str.h"
#include "egress/credentials/sigv4.h"
#include "os/clock.h"

const char inject_redacted[] = "[redacted by atoll]";
const char inject_redacted_name[] = "redacted-by-atoll";

const char *inject_problem(const struct injection *injection)
{
	size_t size = strlen(injection->secret);

	if (size == 0 || size > INJECT_SECRET_MAX)
		return "the secret is empty or too long";
	for (size_t i = 0; i < size; i++)
		if ((unsigned char)injection->secret[i] < 0x20 || injection->secret[i] == 0x7f)
			return "the secret has a line break or another control character in it";
	if (injection->rule->inject.kind == INJECT_AWS)
		return sigv4_problem(injection->secret);
	if (injection->rule->inject.kind == INJECT_BASIC && !strchr(injection->secret, ':'))
		return "a secret for basic authentication is \"user:password\"";
	return NULL;
}

/* Every reading of the path: the server decides which of them it means. */
static bool is_for(const struct net_rule *rule, const struct target_server *server, const struct target *target,
		   const char *method)
{
	struct action action = { .kind = ACTION_HTTP_REQUEST, .subject = server->host, .port = server->port,
				 .method = method };

	if (!server->is_tls || rule->host[0] == '*')
		return false;
	for (size_t i = 0; i < target_reading_count(target); i++) {
		target_set_reading(target, i, &action);
		if (!policy_rule_covers(rule, &action))
			return false;
	}
	return target_reading_count(target) > 0;
}

static void put_base64(struct buf *out, const char *text)
{
	base64_put(out, text, strlen(text));
}

static void put_escaped(struct buf *out, const char *text)
{
	static const char hex[] = "0123456789ABCDEF";

	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		bool is_unreserved = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
				     strchr("-._~", c);

		if (!is_unreserved) {
			buf_put_char(out, '%');
			buf_put_char(out, hex[c >> 4]);
		}
		buf_put_char(out, is_unreserved ? (char)c : hex[c & 15]);
	}
}

/* The one spelling of the secret that goes out. */
static void put_credential(const struct injection *injection, struct buf *out)
{
	static const char *const prefixes[INJECT_KIND_COUNT] = { [INJECT_RAW] = "", [INJECT_BEARER] = "Bearer ",
								 [INJECT_BASIC] = "Basic ", [INJECT_QUERY] = "" };
	enum inject_kind kind = injection->rule->inject.kind;

	buf_put_text(out, prefixes[kind]);
	if (kind == INJECT_BASIC)
		put_base64(out, injection->secret);
	else if (kind == INJECT_QUERY)
		put_escaped(out, injection->secret);
	else
		buf_put_text(out, injection->secret);
}

static void wipe(struct buf *buf)
{
	if (buf->bytes)
		explicit_bzero(buf->bytes, buf->capacity);
	buf_done(buf);
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Whether a piece of a query is a parameter of this name, escaped or not. */
static bool parameter_is(const char *piece, size_t size, const char *name)
{
	size_t i = 0;

	for (; *name && i < size && piece[i] != '='; name++, i++) {
		unsigned char c = (unsigned char)piece[i];

		if (c == '%' && i + 2 < size && digit_of(piece[i + 1]) >= 0 && digit_of(piece[i + 2]) >= 0) {
			c = (unsigned char)(digit_of(piece[i + 1]) << 4 | digit_of(piece[i + 2]));
			i += 2;
		}
		if (c != (unsigned char)*name)
			return false;
	}
	return !*name && (i == size || piece[i] == '=');
}

/* Some servers take ; for & as well: what hides behind one counts too. */
static bool has_parameter(const char *piece, size_t size, const char *name)
{
	const char *end = piece + size;

	for (;;) {
		const char *stop = memchr(piece, ';', (size_t)(end - piece));

		if (parameter_is(piece, (size_t)((stop ? stop : end) - piece), name))
			return true;
		if (!stop)
			return false;
		piece = stop + 1;
	}
}

static int put_query(const struct injection *injection, struct http1_head *head, char **ret_owned)
{
	size_t path = strcspn(head->target, "?");
	const char *at = head->target + path + (head->target[path] == '?');
	const char *name = injection->rule->inject.name;
	struct buf out;
	char joint = '?';

	/* Allocated once, at its full size: growing would leave copies behind. */
	buf_init(&out, strlen(head->target) + 3 * (strlen(name) + strlen(injection->secret)) + 8);
	if (buf_reserve(&out, out.max))
		buf_reset(&out);
	buf_put(&out, head->target, path);
	while (*at) {
		size_t size = strcspn(at, "&");

		if (size && !has_parameter(at, size, name)) {
			buf_put_char(&out, joint);
			buf_put(&out, at, size);
			joint = '&';
		}
		at += size + (at[size] == '&');
	}
	buf_put_char(&out, joint);
	put_escaped(&out, name);
	buf_put_char(&out, '=');
	put_credential(injection, &out);
	*ret_owned = buf_error(&out) < 0 ? NULL : str_dup(buf_text(&out));
	wipe(&out);
	if (!*ret_owned)
		return -ENOMEM;
	head->target = *ret_owned;
	return INJECT_DONE;
}

static size_t credential_max(const struct injection *injection)
{
	return 3 * strlen(injection->secret) + 16;
}

static int sign(const struct injection *injection, const struct target_server *server, struct http1_head *head)
{
	const char *host = http1_find(head, "host");
	char composed[300];

	/* As HTTP/2 has it, in a field of its own. */
	if (!host && str_format(composed, sizeof composed, server->port == 443 ? "%s%s%s" : "%s%s%s:%u",
				str_host_open(server->host), server->host, str_host_close(server->host),
				server->port) < 0)
		return -EINVAL;
	return sigv4_sign(head, &injection->rule->inject, injection->secret, host ? host : composed,
			  clock_realtime_ns() / 1000000000);
}

int inject_request(const struct injection *injection, const struct target_server *server, const struct target *target,
		   struct http1_head *head, char **ret_owned)
{
	struct buf value;
	int r;

	*ret_owned = NULL;
	if (inject_problem(injection) || !is_for(injection->rule, server, target, head->method))
		return INJECT_NOT_HERE;
	if (injection->rule->inject.kind == INJECT_QUERY)
		return str_equal(head->target, "*") ? INJECT_NOT_HERE : put_query(injection, head, ret_owned);
	if (injection->rule->inject.kind == INJECT_AWS)
		return sign(injection, server, head);
	buf_init(&value, credential_max(injection));
	if (buf_reserve(&value, credential_max(injection)))
		buf_reset(&value);
	put_credential(injection, &value);
	r = buf_error(&value);
	if (r == 0)
		r = http1_set(head, injection->rule->inject.name, buf_text(&value));
	if (r == 0)
		head->fields[head->field_count - 1].is_secret = true;
	wipe(&value);
	return r < 0 ? r : INJECT_DONE;
}

void inject_free(char *owned)
{
	if (owned)
		explicit_bzero(owned, strlen(owned));
	free(owned);
}

/* Whether text has the secret as it is or as some encoding of it would show it. */
static bool shows(const struct injection *injection, const char *text, struct buf *scratch)
{
	static void (*const spellings[])(struct buf *out, const char *text) = { put_escaped, put_base64 };

	/* HTTP/2 has names in small letters. */
	if (strcasestr(text, injection->secret))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(spellings); i++) {
		buf_reset(scratch);
		spellings[i](scratch, injection->secret);
		if (buf_error(scratch) < 0 || strcasestr(text, buf_text(scratch)))
			return true;
	}
	return false;
}

int inject_redact(const struct injection *injection, struct http1_head *head)
{
	struct buf scratch;
	int count = 0, r = 0;

	buf_init(&scratch, credential_max(injection));
	if (!buf_reserve(&scratch, credential_max(injection)))
		return -ENOMEM;
	if (shows(injection, head->reason, &scratch)) {
		head->reason = "";
		count++;
	}
	for (size_t i = 0; r == 0 && i < head->field_count; i++) {
		bool is_in_name = shows(injection, head->fields[i].name, &scratch);

		if (!is_in_name && !shows(injection, head->fields[i].value, &scratch))
			continue;
		if (is_in_name)
			head->fields[i].name = inject_redacted_name;
		head->fields[i].value = inject_redacted;
		count++;
	}
	wipe(&scratch);
	return r < 0 ? r : count;
}
