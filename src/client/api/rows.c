/* SPDX-License-Identifier: Apache-2.0 */
#include "client/api/rows.h"

#include <string.h>

#include "base/buf.h"
#include "base/str.h"

enum { DEPTH_MAX = 32, TEXT_MAX = 16 << 20, STRINGS_MAX = 256, ROWS_STEP = 64 };

/* A strict reader. Sticky: after the first byte that is wrong everything fails. */
struct reader {
	const char *at, *end;
	bool is_broken;
	unsigned depth;
};

void rows_done(struct rows *rows)
{
	for (size_t i = 0; i < rows->count; i++)
		atoll_record_free(rows->list[i]);
	free(rows->list);
	*rows = (struct rows){ 0 };
}

int rows_add(struct rows *rows, struct atoll_record *record)
{
	struct atoll_record **grown = rows->list;

	if (record && rows->count % ROWS_STEP == 0)
		grown = realloc(rows->list, (rows->count + ROWS_STEP) * sizeof(struct atoll_record *));
	if (!record || !grown) {
		atoll_record_free(record);
		return -ENOMEM;
	}
	rows->list = grown;
	rows->list[rows->count++] = record;
	return 0;
}

static char peek(struct reader *reader)
{
	while (reader->at < reader->end && strchr(" \t\r\n", *reader->at) && *reader->at)
		reader->at++;
	return reader->is_broken || reader->at == reader->end ? 0 : *reader->at;
}

static bool accept(struct reader *reader, char c)
{
	bool is_there = peek(reader) == c && c;

	reader->at += is_there;
	return is_there;
}

static void expect(struct reader *reader, char c)
{
	if (!accept(reader, c))
		reader->is_broken = true;
}

static uint32_t read_hex(struct reader *reader)
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

static void read_unicode(struct reader *reader, struct buf *out)
{
	uint32_t rune = read_hex(reader), low;

	if (rune >= 0xd800 && rune < 0xdc00) {
		expect(reader, '\\');
		expect(reader, 'u');
		low = read_hex(reader);
		reader->is_broken = reader->is_broken || low < 0xdc00 || low > 0xdfff;
		rune = 0x10000 + ((rune - 0xd800) << 10) + (low - 0xdc00);
	} else if (rune >= 0xdc00 && rune < 0xe000) {
		reader->is_broken = true;
	}
	if (!reader->is_broken)
		put_rune(out, rune);
}

static void read_escape(struct reader *reader, struct buf *out)
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
static void read_string(struct reader *reader, struct buf *out)
{
	char unused[8];
	struct buf nowhere;

	expect(reader, '"');
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

static bool read_number(struct reader *reader, uint64_t *ret)
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

static bool accept_word(struct reader *reader, const char *word)
{
	size_t length = strlen(word);

	(void)peek(reader);
	if ((size_t)(reader->end - reader->at) < length || memcmp(reader->at, word, length) != 0)
		return false;
	reader->at += length;
	return true;
}

static void skip_value(struct reader *reader);

static void skip_list(struct reader *reader, char open, char close)
{
	expect(reader, open);
	if (++reader->depth > DEPTH_MAX)
		reader->is_broken = true;
	if (!accept(reader, close)) {
		do {
			if (open == '{') {
				(void)peek(reader);
				read_string(reader, NULL);
				expect(reader, ':');
			}
			skip_value(reader);
		} while (accept(reader, ','));
		expect(reader, close);
	}
	reader->depth--;
}

static void skip_value(struct reader *reader)
{
	char c = peek(reader);

	if (c == '{')
		skip_list(reader, '{', '}');
	else if (c == '[')
		skip_list(reader, '[', ']');
	else if (c == '"')
		read_string(reader, NULL);
	else if (!accept_word(reader, "true") && !accept_word(reader, "false") && !accept_word(reader, "null"))
		(void)read_number(reader, &(uint64_t){ 0 });
}

/* ---- values of a row ---- */

static int put_text(struct atoll_record *record, const struct key *key, struct buf *text)
{
	if (buf_error(text))
		return buf_error(text);
	if (key->type == ATOLL_TYPE_BYTES)
		return record_put_bytes(record, key->name, text->bytes, text->size);
	return key->type == ATOLL_TYPE_STRING ? record_put_string(record, key->name, buf_text(text)) : 0;
}

static int base64_value(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* In place. */
static int decode_base64(struct buf *text)
{
	uint32_t bits = 0;
	size_t out = 0;
	unsigned have = 0;

	for (size_t i = 0; i < text->size && text->bytes[i] != '='; i++) {
		int value = base64_value((char)text->bytes[i]);

		if (value < 0)
			return -EBADMSG;
		bits = bits << 6 | (uint32_t)value;
		have += 6;
		if (have >= 8) {
			have -= 8;
			text->bytes[out++] = (uint8_t)(bits >> have);
		}
	}
	text->size = out;
	return 0;
}

/* {"b64": "…"}: bytes that are no UTF-8 (base/json.h). Another object is passed over. */
static int read_bytes(struct reader *reader, struct atoll_record *record, const struct key *key)
{
	struct reader look = *reader;
	cleanup_buf struct buf name, text;
	int r;

	buf_init(&name, TEXT_MAX);
	buf_init(&text, TEXT_MAX);
	expect(&look, '{');
	(void)peek(&look);
	read_string(&look, &name);
	expect(&look, ':');
	if (look.is_broken || !str_equal(buf_text(&name), "b64")) {
		skip_value(reader);
		return 0;
	}
	(void)peek(&look);
	read_string(&look, &text);
	expect(&look, '}');
	*reader = look;
	r = reader->is_broken ? -EBADMSG : decode_base64(&text);
	return r < 0 ? r : put_text(record, key, &text);
}

static int read_strings(struct reader *reader, struct atoll_record *record, const struct key *key)
{
	struct field field = { .key = key->name, .kind = FIELD_STRINGS };
	cleanup_buf struct buf text = { 0 };
	size_t count = 0;
	int r = 0;

	if (key->type != ATOLL_TYPE_STRINGS) {
		skip_value(reader);
		return 0;
	}
	field.strings = calloc(STRINGS_MAX + 1, sizeof *field.strings);
	if (!field.strings)
		return -ENOMEM;
	buf_init(&text, TEXT_MAX);
	expect(reader, '[');
	while (!reader->is_broken && r == 0 && peek(reader) == '"' && count < STRINGS_MAX) {
		buf_reset(&text);
		read_string(reader, &text);
		field.strings[count] = str_dup(buf_text(&text));
		r = field.strings[count++] ? 0 : -ENOMEM;
		if (!accept(reader, ','))
			break;
	}
	expect(reader, ']');
	if (r == 0)
		r = record_add_field(record, &field);
	strv_free(field.strings);
	return r;
}

static int read_value(struct reader *reader, struct atoll_record *record, const struct key *key)
{
	cleanup_buf struct buf text;
	uint64_t number;
	bool is_true;

	buf_init(&text, TEXT_MAX);
	switch (peek(reader)) {
	case '"':
		read_string(reader, &text);
		return reader->is_broken ? -EBADMSG : put_text(record, key, &text);
	case '{':
		return read_bytes(reader, record, key);
	case '[':
		return read_strings(reader, record, key);
	case 't':
	case 'f':
		is_true = accept_word(reader, "true");
		reader->is_broken = !is_true && !accept_word(reader, "false");
		return key->type == ATOLL_TYPE_U64 ? record_put_u64(record, key->name, is_true) : 0;
	case 'n':
		skip_value(reader);
		return 0;
	default:
		if (read_number(reader, &number) && key->type == ATOLL_TYPE_U64)
			return record_put_u64(record, key->name, number);
		return 0;
	}
}

/* The members of an object that the kind of record has keys for. */
static int read_row(struct reader *reader, struct atoll_record *record)
{
	cleanup_buf struct buf name;
	int r = 0;

	buf_init(&name, TEXT_MAX);
	expect(reader, '{');
	if (accept(reader, '}'))
		return 0;
	do {
		const struct key *key;

		buf_reset(&name);
		(void)peek(reader);
		read_string(reader, &name);
		expect(reader, ':');
		key = reader->is_broken ? NULL : key_find(atoll_record_kind(record), buf_text(&name));
		if (key)
			r = read_value(reader, record, key);
		else
			skip_value(reader);
	} while (r == 0 && accept(reader, ','));
	expect(reader, '}');
	return r;
}

static int read_list(struct reader *reader, struct rows *rows, uint32_t kind, const char *list)
{
	int r = 0;

	expect(reader, '[');
	if (accept(reader, ']'))
		return 0;
	do {
		struct atoll_record *row;

		if (peek(reader) != '{') {
			skip_value(reader);
			continue;
		}
		row = record_new(kind);
		r = row && list && key_find(kind, "list") ? record_put_string(row, "list", list) : 0;
		if (r == 0)
			r = row ? read_row(reader, row) : -ENOMEM;
		if (r == 0 && !reader->is_broken)
			r = rows_add(rows, row);
		else
			atoll_record_free(row);
	} while (r == 0 && !reader->is_broken && accept(reader, ','));
	expect(reader, ']');
	return r;
}

int rows_from_json(struct rows *rows, uint32_t kind, const char *text, size_t size)
{
	struct reader reader = { .at = text, .end = text + size };
	cleanup_buf struct buf name;
	int r = 0;

	buf_init(&name, TEXT_MAX);
	if (peek(&reader) == '[') {
		r = read_list(&reader, rows, kind, NULL);
	} else {
		expect(&reader, '{');
		do {
			buf_reset(&name);
			(void)peek(&reader);
			read_string(&reader, &name);
			expect(&reader, ':');
			if (peek(&reader) == '[' && !reader.is_broken)
				r = read_list(&reader, rows, kind, buf_text(&name));
			else
				skip_value(&reader);
		} while (r == 0 && accept(&reader, ','));
		expect(&reader, '}');
	}
	if (r == 0 && (reader.is_broken || peek(&reader) || reader.at != reader.end))
		r = -EBADMSG;
	return r;
}

struct atoll_record *rows_result(const struct job_result *result, const char *key)
{
	struct atoll_record *record = record_new(ATOLL_RESULT);
	struct reader reader = { .at = result->text, .end = result->text + result->size };
	const struct key name = { .name = "name", .type = ATOLL_TYPE_STRING };
	cleanup_buf struct buf member;
	int r = record ? 0 : -ENOMEM;

	buf_init(&member, TEXT_MAX);
	if (!key || r < 0)
		return record;
	expect(&reader, '{');
	do {
		buf_reset(&member);
		(void)peek(&reader);
		read_string(&reader, &member);
		expect(&reader, ':');
		if (!reader.is_broken && str_equal(buf_text(&member), key))
			r = read_value(&reader, record, &name);
		else
			skip_value(&reader);
	} while (r == 0 && accept(&reader, ','));
	if (r == 0)
		return record;
	atoll_record_free(record);
	return NULL;
}
