/* SPDX-License-Identifier: Apache-2.0 */
#include "client/api/rows.h"

#include <string.h>

#include "base/json-reader.h"
#include "base/str.h"

enum { TEXT_MAX = 16 << 20, STRINGS_MAX = 256, ROWS_STEP = 64 };

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
static int read_bytes(struct json_reader *reader, struct atoll_record *record, const struct key *key)
{
	struct json_reader look = *reader;
	cleanup_buf struct buf name, text;
	int r;

	buf_init(&name, TEXT_MAX);
	buf_init(&text, TEXT_MAX);
	json_expect(&look, '{');
	(void)json_peek(&look);
	json_read_string(&look, &name);
	json_expect(&look, ':');
	if (look.is_broken || !str_equal(buf_text(&name), "b64")) {
		json_skip(reader);
		return 0;
	}
	(void)json_peek(&look);
	json_read_string(&look, &text);
	json_expect(&look, '}');
	*reader = look;
	r = reader->is_broken ? -EBADMSG : decode_base64(&text);
	return r < 0 ? r : put_text(record, key, &text);
}

static int read_strings(struct json_reader *reader, struct atoll_record *record, const struct key *key)
{
	struct field field = { .key = key->name, .kind = FIELD_STRINGS };
	cleanup_buf struct buf text = { 0 };
	size_t count = 0;
	int r = 0;

	if (key->type != ATOLL_TYPE_STRINGS) {
		json_skip(reader);
		return 0;
	}
	field.strings = calloc(STRINGS_MAX + 1, sizeof *field.strings);
	if (!field.strings)
		return -ENOMEM;
	buf_init(&text, TEXT_MAX);
	json_expect(reader, '[');
	while (!reader->is_broken && r == 0 && json_peek(reader) == '"' && count < STRINGS_MAX) {
		buf_reset(&text);
		json_read_string(reader, &text);
		field.strings[count] = str_dup(buf_text(&text));
		r = field.strings[count++] ? 0 : -ENOMEM;
		if (!json_accept(reader, ','))
			break;
	}
	json_expect(reader, ']');
	if (r == 0)
		r = record_add_field(record, &field);
	strv_free(field.strings);
	return r;
}

static int read_value(struct json_reader *reader, struct atoll_record *record, const struct key *key)
{
	cleanup_buf struct buf text;
	uint64_t number;
	bool is_true;

	buf_init(&text, TEXT_MAX);
	switch (json_peek(reader)) {
	case '"':
		json_read_string(reader, &text);
		return reader->is_broken ? -EBADMSG : put_text(record, key, &text);
	case '{':
		return read_bytes(reader, record, key);
	case '[':
		return read_strings(reader, record, key);
	case 't':
	case 'f':
		is_true = json_accept_word(reader, "true");
		reader->is_broken = !is_true && !json_accept_word(reader, "false");
		return key->type == ATOLL_TYPE_U64 ? record_put_u64(record, key->name, is_true) : 0;
	case 'n':
		json_skip(reader);
		return 0;
	default:
		if (json_read_number(reader, &number) && key->type == ATOLL_TYPE_U64)
			return record_put_u64(record, key->name, number);
		return 0;
	}
}

/* The members of an object that the kind of record has keys for. */
static int read_row(struct json_reader *reader, struct atoll_record *record)
{
	cleanup_buf struct buf name;
	int r = 0;

	buf_init(&name, TEXT_MAX);
	json_expect(reader, '{');
	if (json_accept(reader, '}'))
		return 0;
	do {
		const struct key *key;

		buf_reset(&name);
		(void)json_peek(reader);
		json_read_string(reader, &name);
		json_expect(reader, ':');
		key = reader->is_broken ? NULL : key_find(atoll_record_kind(record), buf_text(&name));
		if (key)
			r = read_value(reader, record, key);
		else
			json_skip(reader);
	} while (r == 0 && json_accept(reader, ','));
	json_expect(reader, '}');
	return r;
}

static int read_list(struct json_reader *reader, struct rows *rows, uint32_t kind, const char *list)
{
	int r = 0;

	json_expect(reader, '[');
	if (json_accept(reader, ']'))
		return 0;
	do {
		struct atoll_record *row;

		if (json_peek(reader) != '{') {
			json_skip(reader);
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
	} while (r == 0 && !reader->is_broken && json_accept(reader, ','));
	json_expect(reader, ']');
	return r;
}

int rows_from_json(struct rows *rows, uint32_t kind, const char *text, size_t size)
{
	struct json_reader reader = { .at = text, .end = text + size };
	cleanup_buf struct buf name;
	int r = 0;

	buf_init(&name, TEXT_MAX);
	if (json_peek(&reader) == '[') {
		r = read_list(&reader, rows, kind, NULL);
	} else {
		json_expect(&reader, '{');
		do {
			buf_reset(&name);
			(void)json_peek(&reader);
			json_read_string(&reader, &name);
			json_expect(&reader, ':');
			if (json_peek(&reader) == '[' && !reader.is_broken)
				r = read_list(&reader, rows, kind, buf_text(&name));
			else
				json_skip(&reader);
		} while (r == 0 && json_accept(&reader, ','));
		json_expect(&reader, '}');
	}
	if (r == 0 && (reader.is_broken || json_peek(&reader) || reader.at != reader.end))
		r = -EBADMSG;
	return r;
}

struct atoll_record *rows_result(const struct job_result *result, const char *key)
{
	struct atoll_record *record = record_new(ATOLL_RESULT);
	struct json_reader reader = { .at = result->text, .end = result->text + result->size };
	const struct key name = { .name = "name", .type = ATOLL_TYPE_STRING };
	cleanup_buf struct buf member;
	int r = record ? 0 : -ENOMEM;

	buf_init(&member, TEXT_MAX);
	if (!key || r < 0)
		return record;
	json_expect(&reader, '{');
	do {
		buf_reset(&member);
		(void)json_peek(&reader);
		json_read_string(&reader, &member);
		json_expect(&reader, ':');
		if (!reader.is_broken && str_equal(buf_text(&member), key))
			r = read_value(&reader, record, &name);
		else
			json_skip(&reader);
	} while (r == 0 && json_accept(&reader, ','));
	if (r == 0)
		return record;
	atoll_record_free(record);
	return NULL;
}
