/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/record/redact.h"

#include <string.h>
#include <strings.h>

#include "egress/message/http1-head.h"

/* Stands where a credential was. No blank and no bracket, so that it is a valid cookie and a valid parameter. */
static const char mark[] = "redacted-by-atoll";

static const char *const fields[] = {
	"authorization", "proxy-authorization", "authentication", "authentication-info", "proxy-authentication-info",
	"cookie", "cookie2", "set-cookie", "set-cookie2", "api-key", "apikey", "x-apikey", "x-auth-key",
	"x-authorization", "x-functions-key", "ocp-apim-subscription-key", "dpop",
	"x-client-cert", "x-forwarded-client-cert", "token",
};

/* "x-amz-security-token", "private-token", "x-vault-token", "x-api-key", "x-goog-api-key" … */
static const char *const field_ends[] = { "-token", "-api-key", "-secret", "-secret-key", "-access-key", "-password",
					  "-credential", "-signature" };

static const char *const parameters[] = {
	"key", "api_key", "apikey", "api-key", "access_token", "refresh_token", "id_token", "auth", "auth_token",
	"token", "secret", "client_secret", "password", "passwd", "pwd", "sig", "signature", "code", "assertion", "jwt",
	"subscription-key", "x-amz-signature", "x-amz-credential", "x-amz-security-token", "x-goog-signature",
	"x-goog-credential", "awsaccesskeyid",
};

static bool is_among(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (http1_name_is(name, names[i]))
			return true;
	return false;
}

static bool ends_like(const char *name, const char *end)
{
	size_t length = strlen(name), end_length = strlen(end);

	return length >= end_length && http1_name_is(name + length - end_length, end);
}

bool redact_is_secret_field(const char *name)
{
	if (is_among(name, fields, ARRAY_SIZE(fields)))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(field_ends); i++)
		if (ends_like(name, field_ends[i]))
			return true;
	return false;
}

void redact_put_value(const char *name, const char *value, struct buf *out)
{
	size_t cookie = strcspn(value, "=;");

	if (!redact_is_secret_field(name)) {
		buf_put_text(out, value);
		return;
	}
	if (ends_like(name, "set-cookie") && value[cookie] == '=') {
		buf_put(out, value, cookie + 1);
		buf_put_text(out, mark);
		buf_put_text(out, value + cookie + strcspn(value + cookie, ";"));
		return;
	}
	buf_put_text(out, mark);
}

/* Escapes in a name are undone, so that none of them hides it. */
static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
}

static bool is_secret_parameter(const char *name, size_t size)
{
	char plain[64];
	size_t used = 0;

	for (size_t i = 0; i < size; i++) {
		bool is_escape = name[i] == '%' && i + 2 < size && hex(name[i + 1]) >= 0 && hex(name[i + 2]) >= 0;

		if (used + 1 == sizeof plain)
			return false;
		plain[used++] = is_escape ? (char)(hex(name[i + 1]) << 4 | hex(name[i + 2])) : name[i];
		i += is_escape ? 2 : 0;
	}
	plain[used] = 0;
	return strlen(plain) == used && is_among(plain, parameters, ARRAY_SIZE(parameters));
}

void redact_put_target(const char *target, struct buf *out)
{
	size_t path = strcspn(target, "?");

	buf_put(out, target, path);
	for (target += path; *target;) {
		size_t size = 1 + strcspn(target + 1, "&"), name = 1 + strcspn(target + 1, "=&");

		if (target[name] == '=' && name < size && is_secret_parameter(target + 1, name - 1)) {
			buf_put(out, target, name + 1);
			buf_put_text(out, mark);
		} else {
			buf_put(out, target, size);
		}
		target += size;
	}
}
