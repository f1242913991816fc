/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json-reader.h"

#include <string.h>

enum { DEPTH_MAX = 32 };

char json_peek(struct json_reader *reader)
{
	while (reader->at < reader->end && strchr(" \t\r\n", *reader->at) && *reader->at)
		reader->at++;
	return reader->is_broken || reader->at == reader->end ? 0 : *reader->at;
}

bool json_accept(struct json_reader *reader, char c)
{
	bool is_there = json_peek(reader) == c && c;

	reader->at += is_there;
	return is_there;
}

void json_expect(struct json_reader *reader, char c)
{
	if (!json_accept(reader, c))
		reader->is_broken = true;
}

static uint32_t read_hex(struct json_reader *reader)
{
	static const char digits[] = "0123456789abcdef";
	uint32_t value = 0;

	for (int i = 0; i < 4; i++) {
		const char *digit = reader->at < reader->end && *reader->at
					    ? memchr(digits, *reader->at | (*reader->at >= 'A' ? 0x20 : 0), 16) : NULL;

		if (!digit) {
			reader->is_broken = true;
			return 0;
		}
		value = value << 4 | (uint32_t)(digit - digits);
		reader->at++;
	}
	return value;
}

static void put_rune(struct buf *out, uint32_t rune)
{
	if (rune < 0x80) {
		buf_put_char(out, (char)rune);
	} else if (rune < 0x800) {
		buf_put_char(out, (char)(0xc0 | rune >> 6));
		buf_put_char(out, (char)(0x80 | (rune & 0x3f)));
	} else {
		if (rune < 0x10000) {
			buf_put_char(out, (char)(0xe0 | rune >> 12));
		} else {
			buf_put_char(out, (char)(0xf0 | rune >> 18));
			buf_put_char(out, (char)(0x80 | (rune >> 12 & 0x3f)));
		}
		buf_put_char(out, (char)(0x80 | (rune >> 6 & 0x3f)));
		buf_put_char(out, (char)(0x80 | (rune & 0x3f)));
	}
}

static void read_unicode(struct json_reader *reader, struct buf *out)
{
	uint32_t rune = read_hex(reader), low;

	if (rune >= 0xd800 && rune < 0xdc00) {
		json_expect(reader, '\\');
		json_expect(reader, 'u');
		low = read_hex(reader);
		reader->is_broken = reader->is_broken || low < 0xdc00 || low > 0xdfff;
		rune = 0x10000 + ((rune - 0xd800) << 10) + (low - 0xdc00);
	} else if (rune >= 0xdc00 && rune < 0xe000) {
		reader->is_broken = true;
	}
	if (!reader->is_broken)
		put_rune(out, rune);
}

static void read_escape(struct json_reader *reader, struct buf *out)
{
	static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
	char name = reader->at < reader->end ? *reader->at++ : 0;
	const char *known = name ? strchr(names, name) : NULL;

	if (known)
		buf_put_char(out, values[known - names]);
	else if (name == 'u')
		read_unicode(reader, out);
	else
		reader->is_broken = true;
}

/* The content; out may be NULL. */
void json_read_string(struct json_reader *reader, struct buf *out)
{
	char unused[8];
	struct buf nowhere;

	json_expect(reader, '"');
	while (!reader->is_broken && reader->at < reader->end && *reader->at != '"') {
		char c = *reader->at++;

		buf_init_fixed(&nowhere, unused, sizeof unused);
		if (c == '\\')
			read_escape(reader, out ? out : &nowhere);
		else if ((unsigned char)c < 0x20)
			reader->is_broken = true;
		else if (out)
			buf_put_char(out, c);
	}
	if (reader->at == reader->end)
		reader->is_broken = true;
	reader->at += !reader->is_broken;
}

bool json_read_number(struct json_reader *reader, uint64_t *ret)
{
	const char *start = reader->at;
	bool is_whole = true;
	uint64_t value = 0;

	while (reader->at < reader->end && *reader->at && strchr("0123456789+-.eE", *reader->at)) {
		char c = *reader->at++;

		is_whole = is_whole && c >= '0' && c <= '9' && !__builtin_mul_overflow(value, 10u, &value) &&
			   !__builtin_add_overflow(value, (uint64_t)(c - '0'), &value);
	}
	if (reader->at == start)
		reader->is_broken = true;
	*ret = value;
	return is_whole && !reader->is_broken;
}

bool json_accept_word(struct json_reader *reader, const char *word)
{
	size_t length = strlen(word);

	(void)json_peek(reader);
	if ((size_t)(reader->end - reader->at) < length || memcmp(reader->at, word, length) != 0)
		return false;
	reader->at += length;
	return true;
}

static void skip_list(struct json_reader *reader, char open, char close)
{
	json_expect(reader, open);
	if (++reader->depth > DEPTH_MAX)
		reader->is_broken = true;
	if (!json_accept(reader, close)) {
		do {
			if (open == '{') {
				(void)json_peek(reader);
				json_read_string(reader, NULL);
				json_expect(reader, ':');
			}
			json_skip(reader);
		} while (json_accept(reader, ','));
		json_expect(reader, close);
	}
	reader->depth--;
}

void json_skip(struct json_reader *reader)
{
	char c = json_peek(reader);

	if (c == '{')
		skip_list(reader, '{', '}');
	else if (c == '[')
		skip_list(reader, '[', ']');
	else if (c == '"')
		json_read_string(reader, NULL);
	else if (!json_accept_word(reader, "true") && !json_accept_word(reader, "false") &&
		 !json_accept_word(reader, "null"))
		(void)json_read_number(reader, &(uint64_t){ 0 });
}
