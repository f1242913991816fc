/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/str.h"
#include "service/protocol/interpreter.h"

static void test_languages_by_every_name(void **state)
{
	enum interpreter_language language;

	for (int i = 0; i < INTERPRETER_LANGUAGE_COUNT; i++) {
		const char *name = interpreter_language_name((enum interpreter_language)i);

		assert_int_equal(interpreter_language_find(name, &language), 0);
		assert_int_equal(language, i);
	}
	assert_int_equal(interpreter_language_find("TS", &language), 0);
	assert_int_equal(language, INTERPRETER_TYPESCRIPT);
	assert_int_equal(interpreter_language_find("", &language), -ENOENT);
}

static void check_shell(const char *json, const char *wanted)
{
	char why[INTERPRETER_WHY_SIZE];
	struct interpreter_request request;
	cleanup_buf struct buf out;

	buf_init(&out, 4096);
	assert_int_equal(interpreter_read_execute(json, strlen(json), &request, why), 0);
	interpreter_put_shell_run(&out, 7, &request);
	interpreter_request_done(&request);
	assert_int_equal(out.bytes[out.size - 1], 0);
	assert_string_equal((const char *)out.bytes, wanted);
}

static void test_words_of_the_shell_are_quoted(void **state)
{
	check_shell("{\"code\":\"echo 'a' $b\\n\"}", "7 'echo '\\''a'\\'' $b\n'");
	check_shell("{\"code\":\"\",\"env_vars\":{\"A\":\"x y'\"}}", "7 '' 'A=x y'\\'''");
}

static void test_words_behind_their_sizes(void **state)
{
	static const char json[] = "{\"code\":\"a\\né\",\"env_vars\":{\"A\":\"x y\"}}";
	char why[INTERPRETER_WHY_SIZE];
	struct interpreter_request request;
	cleanup_buf struct buf out;

	buf_init(&out, 4096);
	assert_int_equal(interpreter_read_execute(json, strlen(json), &request, why), 0);
	interpreter_put_counted_run(&out, 17, &request);
	interpreter_request_done(&request);
	buf_put_char(&out, 0);
	assert_string_equal((const char *)out.bytes, "2 4 5\n17a\néA=x y");
}

struct said {
	const char *line;
	int outcome;
	const char *out;
};

static void test_lines_of_a_driver(void **state)
{
	static const struct said cases[] = {
		{ "{\"id\":3,\"type\":\"end\"}", INTERPRETER_ENDED, "" },
		{ "{\"id\":2,\"type\":\"end\"}", INTERPRETER_IGNORED, "" },
		{ "{\"type\":\"end\"}", INTERPRETER_IGNORED, "" },
		{ "{\"type\":\"missing\"}", INTERPRETER_MISSING, "" },
		{ "{\"id\":3,\"type\":\"result\",\"is_main_result\":true,\"text\":\"'\xc3\xa9'\"}", INTERPRETER_SAID,
		  "{\"type\":\"result\",\"is_main_result\":true,\"text\":\"\\u00E9\"}\n" },
		{ "{\"id\":3,\"type\":\"result\",\"text\":\"x\"}", -EBADMSG, "" },
		{ "{\"id\":3,\"type\":\"error\",\"name\":\"a\",\"value\":\"b\"}", -EBADMSG, "" },
		{ "{\"id\":3,\"type\":\"stdout\",\"text\":\"x\"}", -EBADMSG, "" },
		{ "{\"id\":3,\"id\":4,\"type\":\"end\"}", -EBADMSG, "" },
		{ "[3]", -EBADMSG, "" }, { "{", -EBADMSG, "" }, { "\xff", -EBADMSG, "" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cleanup_buf struct buf out;

		buf_init(&out, 4096);
		assert_int_equal(interpreter_read_line(cases[i].line, strlen(cases[i].line), 3, &out),
				 cases[i].outcome);
		assert_string_equal(buf_text(&out), cases[i].out);
	}
}

static void check_output(const char *bytes, bool is_last, size_t taken, const char *shown)
{
	cleanup_buf struct buf out;
	char wanted[256] = "";

	buf_init(&out, 4096);
	assert_int_equal(interpreter_put_output(&out, false, bytes, strlen(bytes), 5, is_last), taken);
	if (*shown)
		assert_int_equal(str_format(wanted, sizeof wanted,
					    "{\"type\":\"stdout\",\"text\":\"%s\",\"timestamp\":5}\n", shown), 0);
	assert_string_equal(buf_text(&out), wanted);
}

static void test_output_that_ends_within_a_character(void **state)
{
	check_output("a\xc3", false, 1, "a");
	check_output("\xe2\x82", false, 0, "");
	check_output("\xe2\x82", true, 2, "\\uFFFD\\uFFFD");
	check_output("\xe0", false, 0, "");
	check_output("\xed", false, 0, "");
	check_output("\xf0\x9f\x98", false, 0, "");
	check_output("\xf0\x9f\x98\x80", false, 4, "\\uD83D\\uDE00");
	/* Nothing that could follow makes these characters. */
	check_output("\xff", false, 1, "\\uFFFD");
	check_output("\xe0\x80", false, 2, "\\uFFFD\\uFFFD");
	check_output("\x80x", false, 2, "\\uFFFDx");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_languages_by_every_name),
		cmocka_unit_test(test_words_of_the_shell_are_quoted),
		cmocka_unit_test(test_words_behind_their_sizes),
		cmocka_unit_test(test_lines_of_a_driver),
		cmocka_unit_test(test_output_that_ends_within_a_character),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
