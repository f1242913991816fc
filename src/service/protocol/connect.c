/* SPDX-License-Identifier: Apache-2.0 */
#include "service/protocol/connect.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/num.h"
#include "base/str.h"

enum { TIMEOUT_DIGITS = 10, KEEPALIVE_S = 90, KEEPALIVE_MAX_S = 3600 };

static const struct {
	const char *name;
	unsigned status;
} codes[CONNECT_CODE_COUNT] = {
	[CONNECT_OK] = { "ok", 200 },
	[CONNECT_CANCELED] = { "canceled", 499 },
	[CONNECT_UNKNOWN] = { "unknown", 500 },
	[CONNECT_INVALID_ARGUMENT] = { "invalid_argument", 400 },
	[CONNECT_DEADLINE_EXCEEDED] = { "deadline_exceeded", 504 },
	[CONNECT_NOT_FOUND] = { "not_found", 404 },
	[CONNECT_ALREADY_EXISTS] = { "already_exists", 409 },
	[CONNECT_PERMISSION_DENIED] = { "permission_denied", 403 },
	[CONNECT_RESOURCE_EXHAUSTED] = { "resource_exhausted", 429 },
	[CONNECT_FAILED_PRECONDITION] = { "failed_precondition", 400 },
	[CONNECT_ABORTED] = { "aborted", 409 },
	[CONNECT_OUT_OF_RANGE] = { "out_of_range", 400 },
	[CONNECT_UNIMPLEMENTED] = { "unimplemented", 501 },
	[CONNECT_INTERNAL] = { "internal", 500 },
	[CONNECT_UNAVAILABLE] = { "unavailable", 503 },
	[CONNECT_DATA_LOSS] = { "data_loss", 500 },
	[CONNECT_UNAUTHENTICATED] = { "unauthenticated", 401 },
};

static const struct {
	unsigned status;
	enum connect_code code;
} statuses[] = {
	{ 200, CONNECT_OK }, { 201, CONNECT_OK }, { 204, CONNECT_OK }, { 400, CONNECT_INVALID_ARGUMENT },
	{ 401, CONNECT_UNAUTHENTICATED }, { 403, CONNECT_PERMISSION_DENIED }, { 404, CONNECT_NOT_FOUND },
	{ 409, CONNECT_ALREADY_EXISTS }, { 413, CONNECT_RESOURCE_EXHAUSTED }, { 429, CONNECT_RESOURCE_EXHAUSTED },
	{ 499, CONNECT_CANCELED }, { 500, CONNECT_INTERNAL }, { 501, CONNECT_UNIMPLEMENTED },
	{ 502, CONNECT_UNAVAILABLE }, { 503, CONNECT_UNAVAILABLE }, { 504, CONNECT_DEADLINE_EXCEEDED },
	{ 507, CONNECT_RESOURCE_EXHAUSTED },
};

const char *connect_code_name(enum connect_code code)
{
	return codes[code].name;
}

enum connect_code connect_code_from_name(const char *name)
{
	for (size_t i = 0; i < CONNECT_CODE_COUNT; i++)
		if (str_equal(codes[i].name, name))
			return (enum connect_code)i;
	return CONNECT_UNKNOWN;
}

unsigned connect_code_status(enum connect_code code)
{
	return codes[code].status;
}

enum connect_code connect_code_from_status(unsigned status)
{
	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++)
		if (statuses[i].status == status)
			return statuses[i].code;
	return CONNECT_UNKNOWN;
}

static void put_members(struct json *json, enum connect_code code, const char *message)
{
	json_string(json, "code", connect_code_name(code));
	json_string(json, "message", message ? message : "");
}

void connect_put_error(struct buf *out, enum connect_code code, const char *message)
{
	struct json json;

	json_init(&json, out);
	json_object_begin(&json, NULL);
	put_members(&json, code, message);
	json_object_end(&json);
}

void connect_envelope_begin(struct buf *out)
{
	buf_put(out, (const uint8_t[CONNECT_ENVELOPE_SIZE]){ 0 }, CONNECT_ENVELOPE_SIZE);
}

void connect_envelope_end(struct buf *out, size_t at, uint8_t flags)
{
	size_t size = out->size - at - CONNECT_ENVELOPE_SIZE;
	uint8_t *head = out->bytes + at;

	if (buf_error(out) < 0)
		return;
	head[0] = flags;
	for (unsigned i = 1; i < CONNECT_ENVELOPE_SIZE; i++)
		head[i] = (uint8_t)(size >> 8 * (CONNECT_ENVELOPE_SIZE - 1 - i));
}

void connect_put_end(struct buf *out, enum connect_code code, const char *message)
{
	size_t at = out->size;
	struct json json;

	connect_envelope_begin(out);
	json_init(&json, out);
	json_object_begin(&json, NULL);
	if (code != CONNECT_OK) {
		json_object_begin(&json, "error");
		put_members(&json, code, message);
		json_object_end(&json);
	}
	json_object_end(&json);
	connect_envelope_end(out, at, CONNECT_END);
}

int connect_envelope_read(const void *bytes, size_t size, size_t max, struct connect_envelope *ret_envelope,
			  size_t *ret_used)
{
	const uint8_t *at = bytes;
	uint32_t length;

	if (size < CONNECT_ENVELOPE_SIZE)
		return 0;
	if (at[0] & ~(CONNECT_COMPRESSED | CONNECT_END))
		return -EBADMSG;
	if (at[0] & CONNECT_COMPRESSED)
		return -ENOTSUP;
	length = (uint32_t)at[1] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 8 | at[4];
	if (length > max)
		return -EMSGSIZE;
	if (size - CONNECT_ENVELOPE_SIZE < length)
		return 0;
	*ret_envelope = (struct connect_envelope){ at[0], at + CONNECT_ENVELOPE_SIZE, length };
	*ret_used = CONNECT_ENVELOPE_SIZE + length;
	return 1;
}

int connect_read_timeout(const char *text, uint64_t *ret_ms)
{
	*ret_ms = 0;
	if (!text)
		return 0;
	return strlen(text) <= TIMEOUT_DIGITS ? num_parse_u64(text, ret_ms) : -EINVAL;
}

unsigned connect_read_keepalive(const char *text)
{
	uint64_t seconds;

	if (!text || num_parse_u64(text, &seconds) < 0 || seconds == 0 || seconds > KEEPALIVE_MAX_S)
		return KEEPALIVE_S;
	return (unsigned)seconds;
}
