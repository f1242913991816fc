/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Texts that were made to hurt: as long and as deep as can be, no text at all, not of their language. Each
 * must end, within memory, and what was not understood must be said: never nothing.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "verify/parse/parser-memory.h"

static const enum verify_language languages[] = { LANGUAGE_SHELL, LANGUAGE_PYTHON, LANGUAGE_JAVASCRIPT };

enum { LANGUAGES = sizeof languages / sizeof *languages, DEEP = 10000, LONG = 10 << 20, SHORT_MS = 300 };

/* open count times, middle, close count times; then tail. */
static char *nested(const char *open, const char *middle, const char *close, size_t count, const char *tail)
{
	size_t open_size = strlen(open), close_size = strlen(close), middle_size = strlen(middle);
	char *text = malloc((open_size + close_size) * count + middle_size + strlen(tail) + 1), *at = text;

	assert_non_null(text);
	for (size_t i = 0; i < count; i++, at += open_size)
		memcpy(at, open, open_size);
	memcpy(at, middle, middle_size);
	at += middle_size;
	for (size_t i = 0; i < count; i++, at += close_size)
		memcpy(at, close, close_size);
	memcpy(at, tail, strlen(tail) + 1);
	return text;
}

/* What is deep or long in each language. doubts: it must be said that not all was looked at. */
static const struct {
	enum verify_language language;
	const char *open, *middle, *close;
	bool doubts;
} deep[] = {
	{ LANGUAGE_PYTHON, "(", "1", ")", true },
	{ LANGUAGE_PYTHON, "[", "", "]", true },
	{ LANGUAGE_PYTHON, "{1:", "1", "}", true },
	{ LANGUAGE_PYTHON, "f(", "1", ")", true },
	{ LANGUAGE_PYTHON, "a[", "1", "]", true },
	{ LANGUAGE_PYTHON, "not ", "1", "", true },
	{ LANGUAGE_PYTHON, "lambda: ", "1", "", false },
	{ LANGUAGE_PYTHON, "'a'+", "'b'", "", false },
	{ LANGUAGE_PYTHON, "a=", "1", "", true },
	{ LANGUAGE_PYTHON, "a.", "b", "", true },
	{ LANGUAGE_PYTHON, "", "a", "()", true },
	{ LANGUAGE_PYTHON, "(", "1", "", true },
	{ LANGUAGE_JAVASCRIPT, "(", "1", ")", true },
	{ LANGUAGE_JAVASCRIPT, "[", "", "]", true },
	{ LANGUAGE_JAVASCRIPT, "{", "", "}", true },
	{ LANGUAGE_JAVASCRIPT, "f(", "1", ")", true },
	{ LANGUAGE_JAVASCRIPT, "!", "1", "", true },
	{ LANGUAGE_JAVASCRIPT, "x=>", "1", "", true },
	{ LANGUAGE_JAVASCRIPT, "'a'+", "'b'", "", false },
	{ LANGUAGE_JAVASCRIPT, "`${", "1", "}`", true },
	{ LANGUAGE_JAVASCRIPT, "new ", "X()", "", true },
	{ LANGUAGE_JAVASCRIPT, "if(a){b()}else ", "c()", "", false },
	{ LANGUAGE_JAVASCRIPT, "if(a)", "c()", "", true },
	{ LANGUAGE_JAVASCRIPT, "!function(){", "", "}()", false },
	{ LANGUAGE_JAVASCRIPT, "a?b:", "c", "", true },
	{ LANGUAGE_JAVASCRIPT, "(", "1", "", true },
	{ LANGUAGE_SHELL, "$(", "a", ")", true },
	{ LANGUAGE_SHELL, "(", "a", ")", true },
	{ LANGUAGE_SHELL, "{ ", "a", "; }", true },
	{ LANGUAGE_SHELL, "if a; then ", "b", "; fi", true },
};

static void ten_thousand_levels_are_walked_or_said(void **state)
{
	for (size_t i = 0; i < sizeof deep / sizeof *deep; i++) {
		char *text = nested(deep[i].open, deep[i].middle, deep[i].close, DEEP, "\n");
		const char *lines = fixture_walk(deep[i].language, text, strlen(text));

		if ((strstr(lines, "doubt ") != NULL) != deep[i].doubts)
			fail_msg("%s: %s", deep[i].open, lines);
		free(text);
	}
}

/* What stands behind something deep is seen all the same. */
static void what_stands_behind_is_seen(void **state)
{
	static const struct {
		enum verify_language language;
		const char *tail;
	} tails[] = {
		{ LANGUAGE_PYTHON, "\nimport os\nos.remove('/a')\n" },
		{ LANGUAGE_JAVASCRIPT, "\n;require('fs').unlinkSync('/a')\n" },
	};

	for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
		char *text = nested("(", "1", ")", DEEP, tails[i].tail);
		const char *lines = fixture_walk(tails[i].language, text, strlen(text));

		assert_non_null(strstr(lines, "remove '/a'"));
		assert_non_null(strstr(lines, "doubt "));
		free(text);
	}
}

/* Tree-sitter 0.20.7 counts children in 16 bits, and frees what is none of its memory. */
static void more_than_65535_tokens_in_an_error_end_nothing(void **state)
{
	for (size_t i = 0; i < LANGUAGES; i++) {
		char *text = nested("(", "", "", 140000, "");

		assert_non_null(strstr(fixture_walk(languages[i], text, strlen(text)), "doubt "));
		free(text);
		/* And the next text is judged as if nothing had been. */
		assert_non_null(strstr(fixture_walk(LANGUAGE_PYTHON, "open('/a')", 10), "read '/a'"));
	}
}

static void ten_megabytes_are_walked_or_said(void **state)
{
	static const char *const lines[] = { "open('/a')\n", "a = b + 1\n", "'", ";" };

	for (size_t l = 0; l < LANGUAGES; l++) {
		for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
			char *text = nested(lines[i], "", "", LONG / strlen(lines[i]), "");
			const char *found;

			found = fixture_walk_for(languages[l], text, strlen(text), SHORT_MS);
			/* Either all was looked at, or it is said that it was not. */
			if (i == 0 && languages[l] != LANGUAGE_SHELL)
				assert_non_null(strstr(found, "doubt "));
			free(text);
		}
	}
	assert_true(parser_memory_size() < 64 << 20);
}

static void bytes_that_are_no_text_are_said(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
	} bad[] = {
		{ "open('/a')\n\xff\xfe\n", 13 },
		{ "\xc0\x80", 2 },
		{ "x = '\xed\xa0\x80'\n", 10 },
		{ "a\0b = 1\n", 8 },
		{ "\0\0\0\0", 4 },
	};

	for (size_t l = 0; l < LANGUAGES; l++)
		for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
			assert_non_null(
				strstr(fixture_walk(languages[l], bad[i].bytes, bad[i].size), "doubt "));
}

static void a_mark_of_ours_in_the_source_is_none(void **state)
{
	assert_string_equal(fixture_walk(LANGUAGE_PYTHON, "open('/a\x01')", 11), "0 read '/a?'\n");
	assert_string_equal(fixture_walk(LANGUAGE_PYTHON, "open('/a\\x01\\x00')", 18), "0 read '/a?\?'\n");
}

/* One text that is a program in two languages is judged as the one it is given to. */
static void polyglots_are_judged_as_what_runs_them(void **state)
{
	static const char text[] = "''':'\nrm -r /shell\nexit\n'''\nimport os\nos.remove('/python')\n";

	assert_non_null(strstr(fixture_walk(LANGUAGE_PYTHON, text, sizeof text - 1), "remove '/python'"));
	assert_null(strstr(fixture_walk(LANGUAGE_PYTHON, text, sizeof text - 1), "/shell"));
	assert_non_null(strstr(fixture_walk(LANGUAGE_SHELL, text, sizeof text - 1), "remove '/shell'"));
}

/* Work that grows faster than the text: what a text of a few hundred bytes can ask for has a bound too. */
static void small_texts_that_ask_for_much_end(void **state)
{
	static const struct {
		enum verify_language language;
		const char *text;
		bool doubts;
	} greedy[] = {
		{ LANGUAGE_PYTHON, "s = 'a'\nfor i in range(200):\n    s = s + s\nopen(s)\n", false },
		{ LANGUAGE_PYTHON,
		  "def a(x): b(x + 1); b(x + 2); b(x + 3); b(x + 4)\n"
		  "def b(x): c(x + 1); c(x + 2); c(x + 3); c(x + 4)\n"
		  "def c(x): d(x + 1); d(x + 2); d(x + 3); d(x + 4)\n"
		  "def d(x): e(x + 1); e(x + 2); e(x + 3); e(x + 4)\n"
		  "def e(x): f(x + 1); f(x + 2); f(x + 3); f(x + 4)\n"
		  "def f(x): g(x + 1); g(x + 2); g(x + 3); g(x + 4)\n"
		  "def g(x): h(x + 1); h(x + 2); h(x + 3); h(x + 4)\n"
		  "def h(x): i(x + 1); i(x + 2); i(x + 3); i(x + 4)\n"
		  "def i(x): j(x + 1); j(x + 2); j(x + 3); j(x + 4)\n"
		  "def j(x): k(x + 1); k(x + 2); k(x + 3); k(x + 4)\n"
		  "def k(x): open(str(x))\na(1)\n",
		  true },
		{ LANGUAGE_PYTHON,
		  "for a in range(200):\n for b in range(200):\n  for c in range(200):\n   for d in "
		  "range(200):\n    e = a\n",
		  false },
		{ LANGUAGE_PYTHON,
		  "l = [1]\nfor i in range(200):\n    l = [l, l, l, l, l, l, l, l]\nopen(l)\n", false },
		{ LANGUAGE_PYTHON, "c = 'exec(c)'\nexec(c)\n", false },
		{ LANGUAGE_JAVASCRIPT, "let s = 'a'; for (;;) s += s;", false },
		{ LANGUAGE_JAVASCRIPT, "for (let i = 0; i < 1e18; i++) i--;", false },
		{ LANGUAGE_JAVASCRIPT, "const f = x => f(f(f(x))); f(f(f(1)));", false },
		{ LANGUAGE_JAVASCRIPT, "const f = (g, h) => g(h, g)(h(g, h)); f(f, f); f(f(f, f), f);",
		  false },
		{ LANGUAGE_JAVASCRIPT,
		  "let a = []; for (let i = 0; i < 200; i++) a.push(a, a); f(...a, ...a);", false },
	};

	for (size_t i = 0; i < sizeof greedy / sizeof *greedy; i++) {
		const char *lines = fixture_walk(greedy[i].language, greedy[i].text, strlen(greedy[i].text));

		if ((strstr(lines, "doubt ") != NULL) != greedy[i].doubts)
			fail_msg("%s: %.2000s", greedy[i].text, lines);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ten_thousand_levels_are_walked_or_said),
		cmocka_unit_test(what_stands_behind_is_seen),
		cmocka_unit_test(more_than_65535_tokens_in_an_error_end_nothing),
		cmocka_unit_test(ten_megabytes_are_walked_or_said),
		cmocka_unit_test(bytes_that_are_no_text_are_said),
		cmocka_unit_test(a_mark_of_ours_in_the_source_is_none),
		cmocka_unit_test(polyglots_are_judged_as_what_runs_them),
		cmocka_unit_test(small_texts_that_ask_for_much_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
