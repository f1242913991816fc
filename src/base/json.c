/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "base/utf8.h"

void json_init(struct json *json, struct buf *out)
{
	*json = (struct json){ .out = out };
}

/* \uXXXX, as two of them above U+FFFF (RFC 8259, section 7). */
static void put_escape(struct buf *out, uint32_t rune)
{
	static const char hex[] = "0123456789abcdef";

	if (rune >= 0x10000) {
		put_escape(out, 0xd800 + ((rune - 0x10000) >> 10));
		rune = 0xdc00 + ((rune - 0x10000) & 0x3ff);
	}
	buf_put(out, (const char[]){ '\\', 'u', hex[rune >> 12], hex[rune >> 8 & 15], hex[rune >> 4 & 15],
				     hex[rune & 15] }, 6);
}

static void put_text(struct json *json, const uint8_t *at, size_t size)
{
	buf_put_char(json->out, '"');
	while (size) {
		size_t plain = 0;
		uint32_t rune;
		size_t used;

		while (plain < size && at[plain] >= 0x20 && at[plain] < 0x7f && at[plain] != '"' && at[plain] != '\\')
			plain++;
		buf_put(json->out, at, plain);
		at += plain;
		size -= plain;
		if (!size)
			break;
		used = utf8_decode(at, size, &rune);
		if (!used) {
			buf_put_text(json->out, "\\ufffd");
			used = 1;
		} else if (rune == '"' || rune == '\\') {
			buf_put(json->out, (char[]){ '\\', (char)rune }, 2);
		} else if (rune == '\n') {
			buf_put_text(json->out, "\\n");
		} else if (rune == '\t') {
			buf_put_text(json->out, "\\t");
		} else if (rune < 0x20 || rune == 0x7f || utf8_is_unsafe(rune)) {
			/* Invisible characters are escaped, so that a log line shows what it holds. */
			put_escape(json->out, rune);
		} else {
			buf_put(json->out, at, used);
		}
		at += used;
		size -= used;
	}
	buf_put_char(json->out, '"');
}

/* The comma and the key before a value. */
static void begin_value(struct json *json, const char *key)
{
	if (json->has_member[json->depth])
		buf_put_char(json->out, ',');
	json->has_member[json->depth] = true;
	if (key) {
		put_text(json, (const uint8_t *)key, strlen(key));
		buf_put_char(json->out, ':');
	}
}

static void begin_nested(struct json *json, const char *key, char bracket)
{
	begin_value(json, key);
	assert(json->depth + 1 < JSON_DEPTH_MAX);
	buf_put_char(json->out, bracket);
	json->has_member[++json->depth] = false;
}

static void end_nested(struct json *json, char bracket)
{
	assert(json->depth > 0);
	json->depth--;
	buf_put_char(json->out, bracket);
}

void json_object_begin(struct json *json, const char *key)
{
	begin_nested(json, key, '{');
}

void json_object_end(struct json *json)
{
	end_nested(json, '}');
}

void json_array_begin(struct json *json, const char *key)
{
	begin_nested(json, key, '[');
}

void json_array_end(struct json *json)
{
	end_nested(json, ']');
}

void json_string_n(struct json *json, const char *key, const void *bytes, size_t size)
{
	begin_value(json, key);
	put_text(json, bytes, size);
}

void json_string(struct json *json, const char *key, const char *value)
{
	if (value)
		json_string_n(json, key, value, strlen(value));
	else
		json_null(json, key);
}

static void put_base64(struct buf *out, const uint8_t *bytes, size_t size)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < size; i += 3) {
		uint32_t group = (uint32_t)bytes[i] << 16;

		if (i + 1 < size)
			group |= (uint32_t)bytes[i + 1] << 8;
		if (i + 2 < size)
			group |= bytes[i + 2];
		buf_put_char(out, digits[group >> 18]);
		buf_put_char(out, digits[group >> 12 & 63]);
		buf_put_char(out, i + 1 < size ? digits[group >> 6 & 63] : '=');
		buf_put_char(out, i + 2 < size ? digits[group & 63] : '=');
	}
}

void json_bytes(struct json *json, const char *key, const void *bytes, size_t size)
{
	if (utf8_is_valid(bytes, size)) {
		json_string_n(json, key, bytes, size);
		return;
	}
	begin_value(json, key);
	buf_put_text(json->out, "{\"b64\":\"");
	put_base64(json->out, bytes, size);
	buf_put_text(json->out, "\"}");
}

void json_u64(struct json *json, const char *key, uint64_t value)
{
	begin_value(json, key);
	buf_put_u64_decimal(json->out, value);
}

void json_i64(struct json *json, const char *key, int64_t value)
{
	begin_value(json, key);
	if (value < 0)
		buf_put_char(json->out, '-');
	buf_put_u64_decimal(json->out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void json_fixed(struct json *json, const char *key, uint64_t thousandths)
{
	unsigned rest = (unsigned)(thousandths % 1000);

	begin_value(json, key);
	buf_put_u64_decimal(json->out, thousandths / 1000);
	if (rest) {
		char digits[4] = {
			'.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10), (char)('0' + rest % 10),
		};
		size_t length = 4;

		while (digits[length - 1] == '0')
			length--;
		buf_put(json->out, digits, length);
	}
}

void json_bool(struct json *json, const char *key, bool value)
{
	begin_value(json, key);
	buf_put_text(json->out, value ? "true" : "false");
}

void json_hash(struct json *json, const char *key, const struct hash *hash)
{
	char text[HASH_HEX_SIZE + 8] = "sha256:";

	hash_to_hex(hash, text + strlen(text));
	json_string(json, key, text);
}

void json_raw(struct json *json, const char *key, const void *bytes, size_t size)
{
	begin_value(json, key);
	buf_put(json->out, bytes, size);
}

void json_null(struct json *json, const char *key)
{
	begin_value(json, key);
	buf_put_text(json->out, "null");
}
