/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

void buf_init(struct buf *buf, size_t max)
{
	*buf = (struct buf){ .max = max };
}

void buf_init_fixed(struct buf *buf, void *memory, size_t size)
{
	*buf = (struct buf){ .bytes = memory, .capacity = size, .max = size, .is_fixed = true };
}

void buf_done(struct buf *buf)
{
	if (!buf->is_fixed)
		free(buf->bytes);
	*buf = (struct buf){ 0 };
}

void buf_reset(struct buf *buf)
{
	buf->size = 0;
	buf->error = 0;
}

int buf_error(const struct buf *buf)
{
	return buf->error;
}

static bool buf_grow(struct buf *buf, size_t size)
{
	size_t capacity = buf->capacity ? buf->capacity : 256;
	uint8_t *bytes;

	if (buf->error)
		return false;
	if (size > buf->max - buf->size) {
		buf->error = -ENOBUFS;
		return false;
	}
	if (buf->bytes && size <= buf->capacity - buf->size)
		return true;
	while (capacity < buf->size + size)
		capacity *= 2;
	if (capacity > buf->max)
		capacity = buf->max;
	bytes = realloc(buf->bytes, capacity);
	if (!bytes) {
		buf->error = -ENOMEM;
		return false;
	}
	buf->bytes = bytes;
	buf->capacity = capacity;
	return true;
}

void *buf_reserve(struct buf *buf, size_t size)
{
	void *at;

	if (!buf_grow(buf, size))
		return NULL;
	at = buf->bytes + buf->size;
	buf->size += size;
	return at;
}

void buf_put(struct buf *buf, const void *bytes, size_t size)
{
	const uint8_t *from = bytes;
	uint8_t *at = size ? buf_reserve(buf, size) : NULL;

	if (!at)
		return;
	/* musl's memcpy is "rep movsq", whose start costs more than the few bytes that most puts are about. */
	if (size >= 32)
		memcpy(at, from, size);
	else
		for (size_t i = 0; i < size; i++)
			at[i] = from[i];
}

void buf_put_text(struct buf *buf, const char *text)
{
	buf_put(buf, text, strlen(text));
}

void buf_put_char(struct buf *buf, char c)
{
	uint8_t *at = buf_reserve(buf, 1);

	if (at)
		*at = (uint8_t)c;
}

void buf_put_u64_decimal(struct buf *buf, uint64_t value)
{
	char digits[20];
	size_t at = sizeof digits;

	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	buf_put(buf, digits + at, sizeof digits - at);
}

void buf_printf(struct buf *buf, const char *format, ...)
{
	size_t room = buf->error ? 0 : buf->capacity - buf->size;
	va_list args;
	int length;

	/* Mostly there is room, and what is formatted to be measured is formatted twice. */
	va_start(args, format);
	length = vsnprintf(room ? (char *)buf->bytes + buf->size : NULL, room, format, args);
	va_end(args);
	if (length < 0 || !buf_grow(buf, (size_t)length + 1))
		return;
	if ((size_t)length >= room) {
		va_start(args, format);
		vsnprintf((char *)buf->bytes + buf->size, (size_t)length + 1, format, args);
		va_end(args);
	}
	buf->size += (size_t)length;
}

/* One character of escaped text in out; the number of input bytes that it stands for. */
static size_t escape_one(const uint8_t *bytes, size_t size, char out[16], size_t *ret_length)
{
	uint32_t rune;
	size_t used = utf8_decode(bytes, size, &rune);

	if (!used)
		*ret_length = (size_t)snprintf(out, 16, "\\x%02x", bytes[0]);
	else if (rune == '\\')
		*ret_length = (size_t)snprintf(out, 16, "\\\\");
	else if (rune < 0x20 || rune == 0x7f)
		*ret_length = (size_t)snprintf(out, 16, "\\x%02x", (unsigned)rune);
	else if (utf8_is_unsafe(rune))
		*ret_length = (size_t)snprintf(out, 16, "\\u{%04X}", (unsigned)rune);
	else
		memcpy(out, bytes, *ret_length = used > 4 ? 4 : used);
	return used ? used : 1;
}

/* How many bytes at the beginning are put as they are. */
static size_t plain_size(const uint8_t *bytes, size_t size)
{
	size_t plain = 0;

	while (plain < size && bytes[plain] >= 0x20 && bytes[plain] < 0x7f && bytes[plain] != '\\')
		plain++;
	return plain;
}

void buf_put_escaped(struct buf *buf, const void *bytes, size_t size, size_t max_chars)
{
	const uint8_t *at = bytes;
	size_t written = 0;

	while (size) {
		char out[16];
		size_t length, used, plain = plain_size(at, size);

		if (max_chars && plain > max_chars - written)
			plain = max_chars - written;
		buf_put(buf, at, plain);
		written += plain;
		at += plain;
		size -= plain;
		if (!size)
			return;
		used = escape_one(at, size, out, &length);
		if (max_chars && written + length > max_chars) {
			buf_put_text(buf, "…");
			return;
		}
		buf_put(buf, out, length);
		written += length;
		at += used;
		size -= used;
	}
}

bool buf_put_shell_word(struct buf *buf, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
	const uint8_t *at = (const uint8_t *)word;
	size_t size = strlen(word), length;
	char out[16];

	for (size_t used = 0; used < size;) {
		size_t step;

		used += plain_size(at + used, size - used);
		if (used == size)
			break;
		step = escape_one(at + used, size - used, out, &length);
		if (at[used] != '\\' && (length != step || memcmp(out, at + used, length) != 0))
			return false;
		used += step;
	}
	if (size && strspn(word, plain) == size) {
		buf_put(buf, word, size);
		return true;
	}
	buf_put_char(buf, '\'');
	for (; *word; word++)
		if (*word == '\'')
			buf_put_text(buf, "'\\''");
		else
			buf_put_char(buf, *word);
	buf_put_char(buf, '\'');
	return true;
}

void buf_consume(struct buf *buf, size_t size)
{
	if (!size)
		return;
	memmove(buf->bytes, buf->bytes + size, buf->size - size);
	buf->size -= size;
}

const char *buf_text(struct buf *buf)
{
	if (!buf_grow(buf, 1))
		return "";
	buf->bytes[buf->size] = 0;
	return (const char *)buf->bytes;
}
