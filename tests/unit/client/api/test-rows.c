/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/api/rows.h"

static int read_rows(struct rows *rows, uint32_t kind, const char *text)
{
	rows_done(rows);
	return rows_from_json(rows, kind, text, strlen(text));
}

static void a_row_has_what_its_kind_has_keys_for(void **state)
{
	static const char text[] = "{\"session\": \"x\", \"changes\": [{\"path\": {\"b64\": \"L/8=\"},"
				   " \"kind\": \"added\", \"flagged\": true, \"reason\": null,"
				   " \"differs\": [\"mode\", \"owner\"],"
				   " \"staged\": {\"kind\": \"no\", \"deep\": [[{}]]}, \"size\": 1e3}],"
				   " \"counts\": {\"added\": 1}, \"left\": [] }\n";
	const char *const *words;
	struct rows rows = { 0 };
	const void *bytes;
	uint64_t number;
	size_t size;

	assert_int_equal(read_rows(&rows, ATOLL_CHANGE, text), 0);
	assert_int_equal(rows.count, 1);
	assert_int_equal(atoll_get_bytes(rows.list[0], "path", &bytes, &size), 1);
	assert_int_equal(size, 2);
	assert_memory_equal(bytes, "/\xff", 2);
	assert_string_equal(record_string(rows.list[0], "list"), "changes");
	assert_string_equal(record_string(rows.list[0], "kind"), "added");
	assert_int_equal(atoll_get_u64(rows.list[0], "flagged", &number), 1);
	assert_int_equal(number, 1);
	assert_null(record_string(rows.list[0], "reason"));
	assert_int_equal(atoll_get_strings(rows.list[0], "differs", &words), 1);
	assert_string_equal(words[1], "owner");
	rows_done(&rows);
}

static void escapes_are_undone(void **state)
{
	struct rows rows = { 0 };

	assert_int_equal(read_rows(&rows, ATOLL_PROBLEM, "{\"errors\":[{\"message\":"
				   "\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\\n\\\"\\\\\\/\"}]}"), 0);
	assert_string_equal(record_string(rows.list[0], "message"), "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\n\"\\/");
	rows_done(&rows);
}

static void what_is_no_json_is_refused(void **state)
{
	static const char *const wrong[] = {
		"", "{", "[", "{}", "[1", "[{}] x", "{\"a\":[{\"message\":\"\\ud83d\"}]}",
		"{\"a\":[{\"message\":\"\\q\"}]}",
		"{\"a\":[{\"message\":\"x]}", "{\"a\" [1]}", "{\"a\":tru}", "[{\"message\":\"a\nb\"}]",
		"{\"a\":[{\"message\":}]}",
		"{\"errors\":[{\"message\":{\"b64\":\"?\"}}]}",
	};
	char deep[200];
	struct rows rows = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(read_rows(&rows, ATOLL_PROBLEM, wrong[i]), -EBADMSG);
	memset(deep, '[', sizeof deep);
	memcpy(deep, "[[", 2);
	deep[sizeof deep - 1] = 0;
	assert_int_equal(read_rows(&rows, ATOLL_PROBLEM, deep), -EBADMSG);
	rows_done(&rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_row_has_what_its_kind_has_keys_for),
		cmocka_unit_test(escapes_are_undone),
		cmocka_unit_test(what_is_no_json_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
