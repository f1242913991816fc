/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "base/buf.h"
#include "base/options.h"
#include "base/str.h"
#include "base/words.h"

struct target {
	bool flag, other;
	const char *text, *maybe;
	struct option_list list;
};

static const struct option options[] = {
	{ 'f', "flag", NULL, "", OPTION_FLAG, offsetof(struct target, flag) },
	{ 0, "also-flag", NULL, "", OPTION_FLAG, offsetof(struct target, flag) },
	{ 0, "other", NULL, "", OPTION_FLAG, offsetof(struct target, other) },
	{ 't', "text", "X", "", OPTION_TEXT, offsetof(struct target, text) },
	{ 0, "maybe", "X", "", OPTION_MAYBE, offsetof(struct target, maybe) },
	{ 0, "list", "X", "", OPTION_LIST, offsetof(struct target, list) },
};

static void assert_words(const struct words *words, const char *expected)
{
	char memory[512];
	struct buf line;

	buf_init_fixed(&line, memory, sizeof memory);
	for (size_t i = 0; i < words->count; i++)
		buf_printf(&line, "%s%s", i ? " " : "", words->list[i]);
	assert_string_equal(buf_text(&line), expected);
	assert_null(words->list[words->count]);
	assert_int_equal(words_error(words), 0);
}

static void what_was_given_is_passed_on_by_its_first_name(void **state)
{
	struct target given = { .flag = true, .text = "-t", .maybe = "",
				.list = { .values = { "a", "" }, .count = 2 } };
	cleanup_words struct words words = { 0 };

	words_add(&words, "program");
	words_add_options(&words, options, ARRAY_SIZE(options), &given);
	assert_words(&words, "program --flag --text -t --maybe --list a --list ");
}

static void what_was_passed_on_is_parsed_to_the_same(void **state)
{
	struct target given = { .other = true, .text = "", .maybe = "x",
				.list = { .values = { "--", "=" }, .count = 2 } };
	struct target parsed = { 0 };
	cleanup_words struct words words = { 0 };
	struct err err;
	int rest;

	words_add(&words, "program");
	words_add_options(&words, options, ARRAY_SIZE(options), &given);
	words_add(&words, "--");
	words_add_all(&words, (const char *const[]){ "--flag", NULL });
	assert_int_equal(options_parse(options, ARRAY_SIZE(options), &parsed, (int)words.count, words.list, true, &rest,
				       &err), 0);
	assert_string_equal(words.list[rest], "--flag");
	assert_true(parsed.other && !parsed.flag);
	assert_string_equal(parsed.text, "");
	assert_string_equal(parsed.maybe, "x");
	assert_int_equal(parsed.list.count, 2);
	assert_string_equal(parsed.list.values[0], "--");
	assert_string_equal(parsed.list.values[1], "=");
}

static void what_was_not_given_adds_nothing(void **state)
{
	cleanup_words struct words words = { 0 };

	words_add_option(&words, "--a", NULL);
	words_add_flag(&words, false, "--b");
	words_add_all(&words, NULL);
	words_add_options(&words, options, ARRAY_SIZE(options), &(struct target){ 0 });
	assert_int_equal(words.count, 0);
}

static void too_many_words_are_an_error_that_stays(void **state)
{
	cleanup_words struct words words = { 0 };

	for (int i = 0; i < WORDS_MAX; i++)
		words_add(&words, "x");
	assert_int_equal(words_error(&words), 0);
	for (int i = 0; i < 3; i++)
		words_add(&words, "y");
	assert_int_equal(words_error(&words), -E2BIG);
	assert_true(words.count <= WORDS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_given_is_passed_on_by_its_first_name),
		cmocka_unit_test(what_was_passed_on_is_parsed_to_the_same),
		cmocka_unit_test(what_was_not_given_adds_nothing),
		cmocka_unit_test(too_many_words_are_an_error_that_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
