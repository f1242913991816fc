/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What atoll-top makes of what it is told: figures, rates, order, columns for a width, and hostile texts, which take
 * the room that they are counted for and nothing else.
 */

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/num.h"
#include "prog/atoll-top/columns.h"
#include "prog/atoll-top/events.h"

enum { S_NS = 1000000000 };

static void add(struct rows *rows, const char *id, const char *name)
{
	char json[512];
	int size = snprintf(json, sizeof json,
			    "{\"session\":\"%s\",\"name\":%s,\"project\":\"/home/u/shop\",\"policy\":\"medium\","
			    "\"command\":\"sleep 9\"}", id, name);

	assert_int_equal(rows_add(rows, id, json, (size_t)size), 0);
}

static int update(struct rows *rows, const char *id, const char *json, uint64_t at_s)
{
	return rows_update(rows, id, json, strlen(json), at_s * S_NS);
}

static void figures_and_rates_come_from_two_looks(void **state)
{
	struct rows rows = { 0 };
	struct row *row;

	add(&rows, "aaaaaaaaaaaa", "\"one\"");
	assert_int_equal(update(&rows, "aaaaaaaaaaaa", "{\"cpu_ms\":1000,\"uptime_ms\":4000,\"net_in\":100}", 10), 0);
	row = rows_find(&rows, "aaaaaaaaaaaa");
	assert_int_equal(row_millicpus(row), 250); /* of its life */
	assert_int_equal(row_rate_in(row), 0);
	assert_int_equal(update(&rows, "aaaaaaaaaaaa", "{\"cpu_ms\":4000,\"uptime_ms\":6000,\"net_in\":2148,"
				"\"net_out\":10,\"changes\":{\"paths\":7,\"at_least\":true},\"denials\":3,"
				"\"limits\":{\"memory\":1024,\"cpus\":1.5}}", 12), 0);
	assert_int_equal(row_millicpus(row), 1500);
	assert_int_equal(row_rate_in(row), 1024);
	assert_int_equal(row_rate_out(row), 5);
	assert_true(row->now.has_changes && row->now.has_more_changes && row->now.changes == 7);
	assert_int_equal(row->limits[RESOURCE_MEMORY], 1024);
	assert_int_equal(row->limits[RESOURCE_CPUS], 1500);
	assert_true(row->limits[RESOURCE_DISK] == NUM_UNLIMITED);
	assert_int_equal(columns_attention(COLUMN_CPU, row), ATTENTION_ALARM);
	assert_int_equal(columns_attention(COLUMN_DENIED, row), ATTENTION_ALARM);
	assert_int_equal(columns_attention(COLUMN_MEMORY, row), ATTENTION_NONE);
	/* A counter that goes back, as after a restore, is no rate. */
	assert_int_equal(update(&rows, "aaaaaaaaaaaa", "{\"cpu_ms\":1,\"net_in\":1}", 13), 0);
	assert_true(row_millicpus(row) == 0 && row_rate_in(row) == 0);
	rows_done(&rows);
}

static void what_is_no_answer_is_refused(void **state)
{
	static const char *const bad[] = { "", "[]", "3", "{", "{\"a\":1}x", "null", "\"x\"" };
	static const char *const odd[] = {
		"{}", "{\"cpu_ms\":-5,\"denials\":\"7\",\"changes\":[],\"limits\":{\"memory\":-1,\"cpus\":1e300}}",
		"{\"cpu_ms\":9223372036854775807,\"limits\":{\"cpus\":\"x\",\"processes\":{}}}",
		"{\"limits\":{\"cpus\":99999999999,\"memory\":1.5}}",
	};
	struct rows rows = { 0 };

	add(&rows, "aaaaaaaaaaaa", "null");
	assert_int_equal(rows_add(&rows, "aaaaaaaaaaaa", "{}", 2), -EBADMSG);
	assert_int_equal(rows_add(&rows, "short", "{}", 2), -EBADMSG);
	assert_int_equal(rows_add(&rows, NULL, "{}", 2), -EBADMSG);
	assert_int_equal(update(&rows, "bbbbbbbbbbbb", "{}", 1), -EBADMSG);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(update(&rows, "aaaaaaaaaaaa", bad[i], 1), -EBADMSG);
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
		char memory[1024];
		struct buf out;

		assert_int_equal(update(&rows, "aaaaaaaaaaaa", odd[i], i + 2), 0);
		for (int c = 0; c < COLUMN_COUNT; c++) {
			buf_init_fixed(&out, memory, sizeof memory);
			columns[c].format(rows.items[0], &out);
			assert_int_equal(buf_error(&out), 0);
		}
		assert_int_equal(rows.items[0]->now.denials, 0);
	}
	rows_done(&rows);
}

static void rows_are_sorted_and_filtered(void **state)
{
	struct columns_order order = { COLUMN_MEMORY, false, "" };
	struct row *shown[TOP_SESSIONS_MAX];
	struct rows rows = { 0 };

	add(&rows, "cccccccccccc", "\"web\"");
	add(&rows, "aaaaaaaaaaaa", "\"DB\"");
	add(&rows, "bbbbbbbbbbbb", "null");
	assert_int_equal(update(&rows, "aaaaaaaaaaaa", "{\"memory_bytes\":5}", 1), 0);
	assert_int_equal(update(&rows, "bbbbbbbbbbbb", "{\"memory_bytes\":9}", 1), 0);
	assert_int_equal(update(&rows, "cccccccccccc", "{\"memory_bytes\":5}", 1), 0);
	assert_int_equal(columns_sort(&rows, &order, shown), 3);
	assert_string_equal(shown[0]->id, "bbbbbbbbbbbb");
	assert_string_equal(shown[1]->id, "aaaaaaaaaaaa");
	order.is_reversed = true;
	assert_int_equal(columns_sort(&rows, &order, shown), 3);
	assert_string_equal(shown[2]->id, "bbbbbbbbbbbb");
	assert_string_equal(shown[0]->id, "aaaaaaaaaaaa"); /* equal ones in the same order as before */
	order = (struct columns_order){ COLUMN_NAME, false, "db" };
	assert_int_equal(columns_sort(&rows, &order, shown), 1);
	assert_string_equal(shown[0]->name, "DB");
	order.filter = "SHOP";
	assert_int_equal(columns_sort(&rows, &order, shown), 3);
	rows_remove(&rows, "bbbbbbbbbbbb");
	rows_remove(&rows, "bbbbbbbbbbbb");
	assert_int_equal(columns_sort(&rows, &order, shown), 2);
	rows_done(&rows);
}

static void columns_fit_every_width(void **state)
{
	struct column_place places[COLUMN_COUNT];

	for (size_t width = 1; width < 300; width++) {
		size_t count = columns_place(width, places), used = 0;

		assert_true(count >= 2 && places[0].column == COLUMN_ID && places[count - 1].column == COLUMN_COMMAND);
		for (size_t i = 0; i < count; i++)
			used += places[i].width + (i > 0);
		assert_true(used == width || (width < 24 && places[count - 1].width == 1));
	}
	assert_int_equal(columns_place(160, places), COLUMN_COUNT);
	assert_int_equal(columns_place(40, places), 4);
}

static void no_text_takes_more_room_than_it_is_given(void **state)
{
	static const char *const hostile[] = {
		"plain", "\x1b[31mred", "a\xcc\x81\xcc\x81\xcc\x81" "b", "\xe2\x80\xae" "reversed", "\xff\xfe",
		"tab\there", "\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97", "", "\xc2\x9b" "31m",
		"\xf0\x9f\x98\x80\xf0\x9f\x98\x80",
	};

	for (size_t i = 0; i < ARRAY_SIZE(hostile); i++)
		for (size_t width = 0; width < 14; width++)
			for (int side = TEXT_LEFT; side <= TEXT_RIGHT; side++) {
				char memory[256];
				struct buf out;

				buf_init_fixed(&out, memory, sizeof memory);
				text_put(&out, hostile[i], width, (enum text_side)side);
				assert_int_equal(text_width(buf_text(&out)), width);
				for (const char *at = buf_text(&out); *at; at++)
					assert_true((unsigned char)*at >= ' ' && *at != 0x7f);
			}
}

static void texts_of_sessions_are_escaped(void **state)
{
	struct rows rows = { 0 };
	cleanup_buf struct buf out;

	buf_init(&out, 1 << 16);
	add(&rows, "aaaaaaaaaaaa", "\"x\\u001b]0;pwn\\u0007\\u202e\"");
	assert_string_equal(rows.items[0]->name, "x\\x1b]0;pwn\\x07\\u{202E}");
	assert_int_equal(rows_to_json(rows.items, 1, &out), 0);
	for (size_t i = 0; i < out.size; i++)
		assert_true((out.bytes[i] >= ' ' && out.bytes[i] < 0x7f) || out.bytes[i] == '\n');
	assert_non_null(strstr(buf_text(&out), "\"answers\":false"));
	rows_done(&rows);
}

static void the_last_lines_of_a_log_are_kept(void **state)
{
	static struct events events;
	char long_line[3 * EVENT_SIZE];
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	assert_null(events_at(&events, 0));
	for (int i = 0; i < EVENTS_MAX + 5; i++)
		dprintf(ends[1], "line %d\n", i);
	memset(long_line, 'x', sizeof long_line);
	assert_true(write(ends[1], long_line, sizeof long_line) == (ssize_t)sizeof long_line);
	assert_true(write(ends[1], "\nhalf\0a", 7) == 7);
	close(ends[1]);
	while (events_read(&events, ends[0]) > 0)
		continue;
	close(ends[0]);
	assert_int_equal(strlen(events_at(&events, 0)), EVENT_SIZE - 1);
	assert_string_equal(events_at(&events, 1), "line 260");
	assert_string_equal(events_at(&events, EVENTS_MAX - 1), "line 6");
	assert_null(events_at(&events, EVENTS_MAX));
	events_clear(&events);
	assert_null(events_at(&events, 0));
	assert_true(events_is_refusal("2026-11-22 00:49:04.560 net.dns        deny     12      x"));
	assert_false(events_is_refusal("2026-11-22 00:49:04.560 net.dns        allow    12      deny it"));
	assert_false(events_is_refusal("deny"));
	assert_false(events_is_refusal(""));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures_and_rates_come_from_two_looks),
		cmocka_unit_test(what_is_no_answer_is_refused),
		cmocka_unit_test(rows_are_sorted_and_filtered),
		cmocka_unit_test(columns_fit_every_width),
		cmocka_unit_test(no_text_takes_more_room_than_it_is_given),
		cmocka_unit_test(texts_of_sessions_are_escaped),
		cmocka_unit_test(the_last_lines_of_a_log_are_kept),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	text_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
