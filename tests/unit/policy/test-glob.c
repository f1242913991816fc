/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "policy/decide.h"
#include "policy/glob.h"

static void matches_components(void **state)
{
	static const struct {
		const char *pattern, *text;
		bool expected;
	} rows[] = {
		{ "/a/b", "/a/b", true },
		{ "/a/b", "/a/b/c", false },
		{ "/a/*", "/a/b", true },
		{ "/a/*", "/a/b/c", false },
		{ "/a/*", "/a/", true },
		{ "/a/**", "/a/b/c", true },
		{ "/a/**", "/a", true },
		{ "/a/**", "/ab", false },
		{ "**/.env", "/p/q/.env", true },
		{ "**/.env", ".env", true },
		{ "**/.env", "/p/x.env", false },
		{ "/**/.env", "/.env", true },
		{ "/a/**/z", "/a/z", true },
		{ "/a/**/z", "/a/b/c/z", true },
		{ "/a/**/z", "/a/b/c/zz", false },
		{ "/a/?", "/a/b", true },
		{ "/a/?", "/a/bc", false },
		{ "/a/[b-d]x", "/a/cx", true },
		{ "/a/[b-d]x", "/a/ex", false },
		{ "/a/[!b-d]x", "/a/ex", true },
		{ "/a/[^b-d]x", "/a/cx", false },
		{ "/a/[]x]", "/a/]", true },
		{ "/a/\\*", "/a/*", true },
		{ "/a/\\*", "/a/b", false },
		{ "/a/*.tar.*", "/a/x.tar.tar.gz", true },
		{ "/a/[b", "/a/b", false },
		{ "git", "git", true },
		{ "**", "any/thing", true },
		{ "**", "/any", true },
		{ "a", "/a", false },
		{ "/a", "a", false },
		{ "", "", true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (glob_match(rows[i].pattern, rows[i].text) != rows[i].expected)
			fail_msg("%s against %s", rows[i].pattern, rows[i].text);
}

static void says_how_deep(void **state)
{
	assert_int_equal(glob_match_below("/a/*", "/a/b/c/d"), 2);
	assert_int_equal(glob_match_below("/a/**", "/a/b/c/d"), 1);
	assert_int_equal(glob_match_below("/**/x", "/x/y/x/z"), 3);
	assert_int_equal(glob_match_below("/**/x", "/y"), -1);
	assert_int_equal(glob_match_below("/**", "/y"), 0);
	assert_int_equal(glob_match_below("/a", "/ab"), -1);
	assert_int_equal(glob_match_below("/a", "/"), -1);
	assert_int_equal(glob_match_below("/**/.git/hooks/**", "/p/.git/hooks"), 3);
}

static void names_problems(void **state)
{
	char long_pattern[3000];

	memset(long_pattern, 'a', sizeof long_pattern);
	long_pattern[0] = '/';
	long_pattern[sizeof long_pattern - 1] = 0;
	assert_null(glob_problem("/a/**/[a-z]*/\\["));
	assert_non_null(glob_problem("/a/b**"));
	assert_non_null(glob_problem("/a/[b"));
	assert_non_null(glob_problem("/a/b\\"));
	assert_non_null(glob_problem(long_pattern));
	for (size_t i = 0; i < sizeof long_pattern - 1; i++)
		long_pattern[i] = i % 2 ? 'a' : '/';
	assert_non_null(glob_problem(long_pattern));
}

static void samples_are_matched(void **state)
{
	static const char *const patterns[] = {
		"/a/**/b*.c", "/**/mad[e]", "/x[!a-z]y", "/x[^a-zA-Z0-9]", "/\\[a\\*\\?", "/[]]", "/[a-c]?[!a]", "**",
	};
	char out[64];

	for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
		assert_true(glob_sample(patterns[i], out));
		assert_true(glob_match(patterns[i], out));
	}
	assert_true(glob_sample("/\\*\\?", out));
	assert_string_equal(out, "/*?");
	assert_false(glob_sample("/a[!\x01-\xff]", out));
}

/* A backtracking matcher would need longer than the universe for these. */
static void hostile_text_costs_little(void **state)
{
	char text[4096];
	struct timespec start, end;

	for (size_t i = 0; i < sizeof text - 1; i++)
		text[i] = i % 2 ? 'a' : '/';
	text[sizeof text - 1] = 0;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
	assert_false(glob_match("/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/b", text));
	memset(text, 'a', sizeof text - 1);
	assert_false(glob_match("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", text));
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	assert_true(end.tv_sec - start.tv_sec < 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(matches_components),
		cmocka_unit_test(says_how_deep),
		cmocka_unit_test(names_problems),
		cmocka_unit_test(samples_are_matched),
		cmocka_unit_test(hostile_text_costs_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
