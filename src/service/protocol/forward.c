/* SPDX-License-Identifier: Apache-2.0 */
#include "service/protocol/forward.h"

#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

/* What is about one connection, or what this end decides itself. */
static const char *const hop_names[] = {
	"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "TE", "Trailer",
	"Transfer-Encoding", "Upgrade", "Content-Length",
};

/* What only the service is told: a server inside is the sandbox's, and may be anybody's. */
static const char *const own_names[] = {
	"Host", "Expect", "E2b-Sandbox-Id", "E2b-Sandbox-Port", "E2b-Traffic-Access-Token", "X-Access-Token",
	"X-API-KEY", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto",
};

static bool is_among(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcasecmp(names[i], name) == 0)
			return true;
	return false;
}

/* Whether a list that commas separate has this word. */
static bool has_word(const char *list, const char *word)
{
	size_t length = strlen(word);

	while (list && *list) {
		size_t size;

		list += strspn(list, ", \t");
		size = strcspn(list, ", \t");
		if (size == length && strncasecmp(list, word, length) == 0)
			return true;
		list += size;
	}
	return false;
}

bool forward_has_response_header(const char *name, const char *connection)
{
	return !is_among(name, hop_names, ARRAY_SIZE(hop_names)) && !has_word(connection, name);
}

bool forward_has_request_header(const char *name, const char *connection)
{
	return forward_has_response_header(name, connection) && !is_among(name, own_names, ARRAY_SIZE(own_names));
}

bool forward_is_upgrade(const char *connection, const char *upgrade)
{
	return upgrade && *upgrade && has_word(connection, "upgrade");
}

static bool is_token(const char *text)
{
	static const char letters[] =
		"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

	return *text && !text[strspn(text, letters)];
}

bool forward_put_line(struct buf *out, const char *method, const char *target)
{
	if (!is_token(method) || !*target)
		return false;
	for (const char *c = target; *c; c++)
		if (*c <= ' ' || *c == 0x7f)
			return false;
	buf_put_text(out, method);
	buf_put_char(out, ' ');
	buf_put_text(out, target);
	buf_put_text(out, " HTTP/1.1\r\n");
	return true;
}

bool forward_put_header(struct buf *out, const char *name, const char *value)
{
	if (!is_token(name))
		return false;
	for (const char *c = value; *c; c++)
		if (((unsigned char)*c < ' ' && *c != '\t') || *c == 0x7f)
			return false;
	buf_put_text(out, name);
	buf_put_text(out, ": ");
	buf_put_text(out, value);
	buf_put_text(out, "\r\n");
	return true;
}

void forward_put_host(struct buf *out, const char *mask, unsigned port)
{
	static const char variable[] = "${PORT}";

	while (*mask) {
		if (strncmp(mask, variable, sizeof variable - 1) == 0) {
			buf_put_u64_decimal(out, port);
			mask += sizeof variable - 1;
		} else {
			buf_put_char(out, *mask++);
		}
	}
}
