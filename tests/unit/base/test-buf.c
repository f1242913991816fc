/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"

static void grows_to_its_maximum_and_no_further(void **state)
{
	struct buf buf;

	buf_init(&buf, 1000);
	for (int i = 0; i < 1000; i++)
		buf_put_char(&buf, 'x');
	assert_int_equal(buf_error(&buf), 0);
	assert_int_equal(buf.size, 1000);
	buf_put_char(&buf, 'y');
	assert_int_equal(buf_error(&buf), -ENOBUFS);
	assert_int_equal(buf.size, 1000);
	buf_done(&buf);
}

static void errors_are_sticky_until_reset(void **state)
{
	struct buf buf;

	buf_init(&buf, 8);
	buf_put(&buf, "123456789", 9);
	assert_int_equal(buf_error(&buf), -ENOBUFS);
	assert_int_equal(buf.size, 0);
	buf_put_text(&buf, "a");
	buf_printf(&buf, "%d", 1);
	buf_put_u64_decimal(&buf, 1);
	assert_null(buf_reserve(&buf, 1));
	assert_string_equal(buf_text(&buf), "");
	assert_int_equal(buf.size, 0);
	buf_reset(&buf);
	buf_put_text(&buf, "a");
	assert_string_equal(buf_text(&buf), "a");
	buf_done(&buf);
	buf_put_text(&buf, "after done");
	assert_int_equal(buf_error(&buf), -ENOBUFS);
}

static void fixed_memory_is_never_left(void **state)
{
	char memory[8 + 1];
	struct buf buf;

	memory[8] = '!';
	buf_init_fixed(&buf, memory, 8);
	buf_put_text(&buf, "12345678");
	assert_int_equal(buf_error(&buf), 0);
	assert_string_equal(buf_text(&buf), "");
	assert_int_equal(buf_error(&buf), -ENOBUFS);
	assert_int_equal(memory[8], '!');
	buf_done(&buf);
}

static void huge_sizes_do_not_wrap(void **state)
{
	struct buf buf;

	buf_init(&buf, SIZE_MAX);
	buf_put_text(&buf, "abc");
	assert_null(buf_reserve(&buf, SIZE_MAX));
	assert_int_equal(buf_error(&buf), -ENOBUFS);
	buf_done(&buf);
}

static void puts_of_every_length(void **state)
{
	uint8_t bytes[100];

	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)i;
	for (size_t size = 0; size < sizeof bytes; size++) {
		struct buf buf;

		buf_init(&buf, 1000);
		buf_put(&buf, bytes, size);
		buf_put(&buf, bytes, size);
		assert_int_equal(buf.size, 2 * size);
		if (size) {
			assert_memory_equal(buf.bytes, bytes, size);
			assert_memory_equal(buf.bytes + size, bytes, size);
		}
		buf_consume(&buf, size);
		assert_int_equal(buf.size, size);
		if (size)
			assert_memory_equal(buf.bytes, bytes, size);
		buf_done(&buf);
	}
}

static void numbers_and_formats(void **state)
{
	struct buf buf;

	buf_init(&buf, 100);
	buf_put_u64_decimal(&buf, 0);
	buf_put_char(&buf, ' ');
	buf_put_u64_decimal(&buf, UINT64_MAX);
	buf_printf(&buf, " %s%%", "x");
	assert_string_equal(buf_text(&buf), "0 18446744073709551615 x%");
	buf_reset(&buf);
	buf_printf(&buf, "%99s", "");
	assert_int_equal(buf.size, 99);
	buf_printf(&buf, "%s", "y");
	assert_int_equal(buf_error(&buf), -ENOBUFS);
	buf_done(&buf);
}

static void assert_escaped(const void *bytes, size_t size, size_t max, const char *expected)
{
	struct buf buf;

	buf_init(&buf, 4096);
	buf_put_escaped(&buf, bytes, size, max);
	assert_string_equal(buf_text(&buf), expected);
	buf_done(&buf);
}

static void escaping_leaves_nothing_that_a_terminal_obeys(void **state)
{
	assert_escaped("plain, äöü 🌱", strlen("plain, äöü 🌱"), 0, "plain, äöü 🌱");
	assert_escaped("\x1b[2J\r\n\t\b\x7f", 9, 0, "\\x1b[2J\\x0d\\x0a\\x09\\x08\\x7f");
	assert_escaped("a\0b", 3, 0, "a\\x00b");
	assert_escaped("\\x1b", 4, 0, "\\\\x1b");
	assert_escaped("\xc2\x9b" "31m", 5, 0, "\\u{009B}31m");
	assert_escaped("\xe2\x80\xae", 3, 0, "\\u{202E}");
	assert_escaped("\xf3\xa0\x80\x81", 4, 0, "\\u{E0001}");
	assert_escaped("\xff\xc0\xaf\xed\xa0\x80", 6, 0, "\\xff\\xc0\\xaf\\xed\\xa0\\x80");
	assert_escaped("\xe2\x80", 2, 0, "\\xe2\\x80");
	assert_escaped("", 0, 0, "");
}

static void escaping_is_cut_between_characters(void **state)
{
	assert_escaped("abcdef", 6, 6, "abcdef");
	assert_escaped("abcdef", 6, 5, "abcde…");
	assert_escaped("ab\x1b", 3, 5, "ab…");
	assert_escaped("aä", 3, 2, "a…");
}

static void assert_word(const char *word, const char *expected)
{
	struct buf buf;

	buf_init(&buf, 1000);
	assert_int_equal(buf_put_shell_word(&buf, word), expected != NULL);
	assert_string_equal(buf_text(&buf), expected ? expected : "");
	buf_done(&buf);
}

static void a_word_is_quoted_for_a_shell_or_refused(void **state)
{
	(void)state;
	assert_word("/a/b-c.d", "/a/b-c.d");
	assert_word("", "''");
	assert_word("a b", "'a b'");
	assert_word("it's", "'it'\\''s'");
	assert_word("$(x) \\ `y` *", "'$(x) \\ `y` *'");
	assert_word("äöü", "'äöü'");
	assert_word("~", "'~'");
	assert_word("a\nb", NULL);
	assert_word("a\x1b[2J", NULL);
	assert_word("a\\\xff", NULL);
	assert_word("\xe2\x80\xae", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grows_to_its_maximum_and_no_further),
		cmocka_unit_test(errors_are_sticky_until_reset),
		cmocka_unit_test(fixed_memory_is_never_left),
		cmocka_unit_test(huge_sizes_do_not_wrap),
		cmocka_unit_test(puts_of_every_length),
		cmocka_unit_test(numbers_and_formats),
		cmocka_unit_test(escaping_leaves_nothing_that_a_terminal_obeys),
		cmocka_unit_test(escaping_is_cut_between_characters),
		cmocka_unit_test(a_word_is_quoted_for_a_shell_or_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
