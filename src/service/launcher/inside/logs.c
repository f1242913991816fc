/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/inside/logs.h"

#include <string.h>
#include <time.h>

#include "base/json-reader.h"
#include "base/num.h"
#include "base/str.h"

enum { TEXT_SIZE = 512, KEY_MAX = 64, MS_PER_S = 1000, LOOKED_MAX = 2000 };

/* What is shown of a record. */
struct line {
	char time[TEXT_SIZE], type[TEXT_SIZE], verdict[TEXT_SIZE], subject[TEXT_SIZE];
};

static void read_member(struct json_reader *reader, const char *key, struct line *line)
{
	const struct {
		const char *key;
		char *out;
	} members[] = {
		{ "ts", line->time }, { "type", line->type }, { "verdict", line->verdict }, { "subject",
		line->subject },
	};

	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		struct buf text;

		if (!str_equal(members[i].key, key) || json_peek(reader) != '"')
			continue;
		/* What does not fit is cut: a byte of the end stays for the NUL. */
		buf_init(&text, 64 << 10);
		json_read_string(reader, &text);
		(void)!str_format(members[i].out, TEXT_SIZE, "%.*s", TEXT_SIZE - 1, buf_text(&text));
		buf_done(&text);
		return;
	}
	json_skip(reader);
}

static bool read_line(const void *bytes, size_t size, struct line *ret_line)
{
	struct json_reader reader = { .at = bytes, .end = (const char *)bytes + size };
	char memory[KEY_MAX];
	struct buf key;

	*ret_line = (struct line){ 0 };
	json_expect(&reader, '{');
	do {
		buf_init_fixed(&key, memory, sizeof memory);
		json_read_string(&reader, &key);
		json_expect(&reader, ':');
		read_member(&reader, buf_text(&key), ret_line);
	} while (json_accept(&reader, ','));
	json_expect(&reader, '}');
	return !reader.is_broken;
}

static uint64_t time_of(const char *text)
{
	struct tm tm = { 0 };
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	uint64_t ms = 0;
	char digits[4];

	if (rest && *rest == '.' && str_format(digits, sizeof digits, "%.3s", rest + 1) == 0)
		(void)!num_parse_u64(digits, &ms);
	return rest ? (uint64_t)timegm(&tm) * MS_PER_S + ms : 0;
}

static const char *level_of(const struct line *line)
{
	if (str_equal(line->type, "alert") || str_equal(line->type, "limit.hit"))
		return "error";
	return str_equal(line->verdict, "deny") || str_equal(line->verdict, "ask") ? "warn" : "info";
}

/* Backward, a client says where to end: it reads from the newest on. */
static bool is_in_time(const struct call *call, uint64_t time_ms)
{
	if (call_number(call, "backward", 0))
		return time_ms <= call_number(call, "start_ms", UINT64_MAX);
	return time_ms >= call_number(call, "start_ms", 0);
}

static bool is_wanted(const struct call *call, const struct line *line, uint64_t time_ms, const char *message)
{
	static const char *const levels[] = { "debug", "info", "warn", "error" };
	const char *search = call_string(call, "search"), *level = call_string(call, "level");
	size_t least = 0, own = 1;

	for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
		least = str_equal(levels[i], level) ? i : least;
		own = str_equal(levels[i], level_of(line)) ? i : own;
	}
	return own >= least && is_in_time(call, time_ms) && (!search || strstr(message, search));
}

/* True: it was a row. */
static bool put_row(struct call *call, const struct line *line)
{
	struct buf *row = &call->daemon->row;
	uint64_t time_ms = time_of(line->time);
	char message[2 * TEXT_SIZE + 32];

	if (str_format(message, sizeof message, "%s%s%s%s%s", line->type, line->subject[0] ? " " : "", line->subject,
		       line->verdict[0] ? ": " : "", line->verdict) < 0 || !is_wanted(call, line, time_ms, message))
		return false;
	service_begin_row(row);
	field_put_u64(row, "time_ms", time_ms);
	field_put_string(row, "level", level_of(line));
	field_put_string(row, "message", message);
	service_put_row(&call->rows, row);
	return true;
}

/* Reads until a page is full; where the next one begins (backward: ends), 0: there is none yet. */
static uint64_t read_page(struct call *call, atoll_cursor *cursor)
{
	uint64_t limit = call_number(call, "limit", SERVICE_ROWS_MAX), rows = 0, looked = 0, at = 0;
	bool is_backward = call_number(call, "backward", 0);
	atoll_record *record;
	struct line line;

	while (rows < limit && looked < LOOKED_MAX) {
		const void *bytes;
		size_t size = 0;

		if (atoll_cursor_next(cursor, &record, NULL) != 1)
			return 0;
		(void)atoll_get_u64(record, "at", &at);
		if (atoll_get_bytes(record, "line", &bytes, &size) && read_line(bytes, size, &line))
			rows += put_row(call, &line);
		atoll_record_free(record);
		at += is_backward ? 0 : size + 1;
		looked++;
	}
	return at;
}

void logs_show(struct call *call)
{
	struct atoll_error error = { .size = sizeof error };
	const char *next = call_string(call, "next");
	atoll_record *how = atoll_record_new(ATOLL_LOG);
	atoll_cursor *cursor = NULL;
	uint64_t at = 0;
	struct buf *out;
	char number[24];
	int r = how ? 0 : ATOLL_E_NO_MEMORY;

	if (r == 0 && next && (num_parse_u64(next, &at) < 0 || !at || at > INT64_MAX))
		r = ATOLL_E_INVALID;
	if (r == 0)
		r = atoll_set_u64(how, "at", at, &error);
	if (r == 0)
		r = atoll_set_u64(how, "backward", call_number(call, "backward", 0), &error);
	if (r == 0)
		r = call->sandbox->handle ? atoll_log(call->sandbox->handle, how, &cursor, &error) : ATOLL_E_NOT_FOUND;
	atoll_record_free(how);
	if (r < 0) {
		call_fail_atoll(call, r, error.what[0] ? error.what : "there is no such page of the log", error.hint);
		return;
	}
	at = read_page(call, cursor);
	atoll_cursor_free(cursor);
	out = call_begin_reply(call, 200);
	buf_put(out, call->rows.bytes, call->rows.size);
	if (at && str_format(number, sizeof number, "%llu", (unsigned long long)at) == 0)
		field_put_string(out, "next", number);
	call_end_reply(call, NULL, 0);
}
