/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the filter of the rules lets through. It may let through too much, never too little: whatever a pattern matches,
 * by any of the ways in which rules compare, must be among it. Texts are made from the patterns themselves.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fnmatch.h>

#include "policy/decide.h"
#include "verify/rules/filter.h"

enum { ROUNDS = 400, TEXT_MAX = 256 };

static const char *patterns[] = {
	"rm", "g++", "*", "?", "**", "a*", "*sh", "*.sh", "*.pem", "ssh-*", "[abc]*", "x[!a]y", "[]a]bcd",
	"ab[[:alpha:]]cd*ef", "\\*literal", "a\\*bcd*", "trailing\\", "*drop table*", "*DROP*Table*",
	"/etc/passwd", "/etc/**", "/etc/cron.*/**", "**/.ssh/**", "**/.git/hooks/**", "~", "~/**",
	"~/.ssh/id_*", "~/.config/autostart/**", "/dev/sd?", "/dev/nvme*", "/proc/*/mem", "/**/x",
	"./node_modules", "*://*/webhook*", "a/**/b", "/a/**", "/a/*", "/ab/*/**", "?/**/*cd*",
	"user@host*", "*=*ssh -i*", "--no-verify*", "-[rR]f*", "https://*",
};

static uint32_t state = 1;

static uint32_t next_random(uint32_t below)
{
	state = state * 1664525 + 1013904223;
	return (state >> 8) % below;
}

/* What a wildcard might stand for. */
static const char *some_text(bool is_folder)
{
	static const char *const texts[] = { "", "a", "xy", ".", "-", "Q", "long-enough", "\x01", "a b" };
	static const char *const folders[] = { "", "a", "a/b", "x/y/z" };

	return is_folder ? folders[next_random(4)] : texts[next_random(9)];
}

static void put(char *text, size_t *size, const char *part, bool may_fold)
{
	for (; *part && *size + 1 < TEXT_MAX; part++) {
		char c = *part;

		if (may_fold && c >= 'a' && c <= 'z' && next_random(2))
			c = (char)(c - 'a' + 'A');
		text[(*size)++] = c;
	}
	text[*size] = '\0';
}

/* A text that the pattern may well match: whether it does is asked of those who compare. */
static void make_text(const char *pattern, bool may_fold, char text[TEXT_MAX])
{
	size_t size = 0;

	text[0] = '\0';
	for (const char *at = pattern; *at; at++) {
		if (at[0] == '*' && at[1] == '*') {
			put(text, &size, some_text(true), may_fold);
			at++;
			/* No folder at all: the slash beside it goes as well. */
			if (at[1] == '/' && next_random(2))
				at++;
		} else if (*at == '*') {
			put(text, &size, some_text(false), may_fold);
		} else if (*at == '?') {
			put(text, &size, "q", false);
		} else if (*at == '[') {
			put(text, &size, next_random(2) ? "a" : "b", false);
			at = strchr(at + 2, ']') ? strrchr(at, ']') : at;
		} else {
			if (*at == '\\' && at[1])
				at++;
			put(text, &size, (const char[]){ *at, '\0' }, may_fold);
		}
	}
	/* "/etc/" as rules have it: without the slash at the end. */
	if (size > 1 && text[size - 1] == '/' && next_random(2))
		text[size - 1] = '\0';
}

static bool matches(const char *pattern, const char *text)
{
	return fnmatch(pattern, text, 0) == 0 || fnmatch(pattern, text, FNM_CASEFOLD) == 0 || glob_match(pattern, text);
}

static struct filter *filter_of(struct arena *arena, uint16_t bits[])
{
	struct filter *filter = arena_alloc(arena, sizeof *filter);

	assert_non_null(filter);
	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
		struct vec one = { &patterns[i], 1, 1 };

		bits[i] = filter_add(filter, arena, &one);
	}
	return filter;
}

static void nothing_that_matches_is_left_out(void **unused)
{
	struct arena arena = { 0 };
	uint16_t bits[ARRAY_SIZE(patterns)];
	struct filter *filter = filter_of(&arena, bits);
	size_t matched[ARRAY_SIZE(patterns)] = { 0 };

	for (size_t round = 0; round < ROUNDS * ARRAY_SIZE(patterns); round++) {
		struct filter_hits hits = { .bits = { 1ULL << FILTER_ALWAYS } };
		char text[TEXT_MAX];

		make_text(patterns[round / ROUNDS], round % 2, text);
		filter_note(filter, text, &hits);
		for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
			if (!matches(patterns[i], text))
				continue;
			matched[i]++;
			assert_true(filter_may_match(&hits, bits[i]));
		}
	}
	/* Of each some did: the test is worth something. "[!a]" and what ends in a backslash are hit by chance. */
	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++)
		if (!strchr(patterns[i], '[') && patterns[i][strlen(patterns[i]) - 1] != '\\')
			assert_true(matched[i] > 0);
	arena_done(&arena);
}

static void most_is_ruled_out(void **unused)
{
	static const char *const plain[] = { "gcc", "-O2", "src/main.c", "build/part1/main.o", "echo", "built part1" };
	struct arena arena = { 0 };
	uint16_t bits[ARRAY_SIZE(patterns)];
	struct filter *filter = filter_of(&arena, bits);
	size_t through = 0, told = 0;

	for (size_t at = 0; at < ARRAY_SIZE(plain); at++) {
		struct filter_hits hits = { .bits = { 1ULL << FILTER_ALWAYS } };

		filter_note(filter, plain[at], &hits);
		for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
			told += bits[i] != FILTER_ALWAYS;
			through += bits[i] != FILTER_ALWAYS && filter_may_match(&hits, bits[i]);
		}
	}
	assert_true(told > 100);
	assert_true(through * 50 < told);
	arena_done(&arena);
}

static void the_same_patterns_are_one(void **unused)
{
	static const char *one[] = { "abcd", "x*yzzy" }, *same[] = { "abcd", "x*yzzy" };
	struct arena arena = { 0 };
	struct filter *filter = arena_alloc(&arena, sizeof *filter);
	struct vec first = { one, 2, 2 }, second = { same, 2, 2 }, none = { 0 };
	uint16_t bit;

	assert_non_null(filter);
	bit = filter_add(filter, &arena, &first);
	assert_int_not_equal(bit, FILTER_ALWAYS);
	assert_int_equal(filter_add(filter, &arena, &second), bit);
	assert_int_equal(filter->keys.count, 2);
	assert_int_equal(filter_add(filter, &arena, &none), FILTER_ALWAYS);
	arena_done(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_that_matches_is_left_out),
		cmocka_unit_test(most_is_ruled_out),
		cmocka_unit_test(the_same_patterns_are_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
