/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/options.h"

struct given {
	bool quiet, verbose;
	const char *policy, *report;
	const char *mode;
	struct option_list env;
};

static const struct option options[] = {
	{ 'q', "quiet", NULL, "say nothing", OPTION_FLAG, offsetof(struct given, quiet) },
	{ 'v', "verbose", NULL, "say more", OPTION_FLAG, offsetof(struct given, verbose) },
	{ 'p', "policy", "POLICY", "use it", OPTION_TEXT, offsetof(struct given, policy) },
	{ 0, "report", "FILE", "write it", OPTION_TEXT, offsetof(struct given, report) },
	{ 0, "narrow", "MODE", "less of it", OPTION_MAYBE, offsetof(struct given, mode) },
	{ 'e', "env", "NAME", "pass it", OPTION_LIST, offsetof(struct given, env) },
};

enum { ARGC_MAX = 80 };

struct line {
	char *argv[ARGC_MAX + 1];
	int argc, rest, result;
	struct given given;
	struct err err;
};

/* Parses the words (NULL-terminated) behind a verb. */
static struct line parse(bool permute, const char *const *words)
{
	struct line line = { .argv = { (char *)"verb" }, .argc = 1, .rest = -1 };

	for (; *words; words++)
		line.argv[line.argc++] = (char *)*words;
	line.result = options_parse(options, ARRAY_SIZE(options), &line.given, line.argc, line.argv, permute,
				    &line.rest, &line.err);
	return line;
}

#define PARSE(permute, ...) parse(permute, (const char *const[]){ __VA_ARGS__, NULL })

static void every_spelling_of_a_value_works(void **state)
{
	struct line line = PARSE(false, "-pone");

	assert_string_equal(line.given.policy, "one");
	line = PARSE(false, "-p", "two");
	assert_string_equal(line.given.policy, "two");
	line = PARSE(false, "--policy=three");
	assert_string_equal(line.given.policy, "three");
	line = PARSE(false, "--policy", "four");
	assert_string_equal(line.given.policy, "four");
	line = PARSE(false, "--policy=");
	assert_string_equal(line.given.policy, "");
	line = PARSE(false, "--policy", "--quiet");
	assert_string_equal(line.given.policy, "--quiet");
	assert_false(line.given.quiet);
	line = PARSE(false, "-pone", "--policy=two");
	assert_string_equal(line.given.policy, "two");
	line = PARSE(false, "--policy=a=b");
	assert_string_equal(line.given.policy, "a=b");
}

static void a_value_that_may_be_missing_is_never_the_next_word(void **state)
{
	struct line line = PARSE(false, "--narrow", "auto");

	assert_int_equal(line.result, 0);
	assert_string_equal(line.given.mode, "");
	assert_string_equal(line.argv[line.rest], "auto");
	line = PARSE(false, "--narrow=auto", "rest");
	assert_string_equal(line.given.mode, "auto");
	line = PARSE(false, "--narrow=");
	assert_string_equal(line.given.mode, "");
	line = PARSE(false, "-q");
	assert_null(line.given.mode);
}

static void flags_cluster_and_end_in_a_value(void **state)
{
	struct line line = PARSE(false, "-qvp", "one", "rest");

	assert_int_equal(line.result, 0);
	assert_true(line.given.quiet && line.given.verbose);
	assert_string_equal(line.given.policy, "one");
	assert_int_equal(line.rest, 4 - 1);
	line = PARSE(false, "-qpone");
	assert_true(line.given.quiet);
	assert_string_equal(line.given.policy, "one");
}

static void lists_keep_their_order(void **state)
{
	struct line line = PARSE(false, "-eA", "--env", "B", "--env=C");

	assert_int_equal(line.given.env.count, 3);
	assert_string_equal(line.given.env.values[0], "A");
	assert_string_equal(line.given.env.values[1], "B");
	assert_string_equal(line.given.env.values[2], "C");
}

static void lists_are_bounded(void **state)
{
	const char *words[OPTION_LIST_MAX + 2] = { 0 };
	struct line line;

	for (size_t i = 0; i <= OPTION_LIST_MAX; i++)
		words[i] = "-eX";
	line = parse(false, words);
	assert_int_equal(line.result, -EINVAL);
	words[OPTION_LIST_MAX] = NULL;
	line = parse(false, words);
	assert_int_equal(line.result, 0);
}

static void the_first_word_ends_the_options(void **state)
{
	struct line line = PARSE(false, "-q", "make", "-j2", "--policy", "x");

	assert_int_equal(line.result, 0);
	assert_int_equal(line.rest, 2);
	assert_string_equal(line.argv[line.rest], "make");
	assert_string_equal(line.argv[line.rest + 1], "-j2");
	assert_null(line.given.policy);
}

static void two_dashes_end_the_options(void **state)
{
	struct line line = PARSE(false, "-q", "--", "-v", "--help");

	assert_int_equal(line.result, 0);
	assert_int_equal(line.rest, 3);
	assert_string_equal(line.argv[3], "-v");
	assert_false(line.given.verbose);
	line = PARSE(true, "word", "--", "-v");
	assert_int_equal(line.result, 0);
	assert_false(line.given.verbose);
	assert_string_equal(line.argv[line.rest], "word");
	assert_string_equal(line.argv[line.rest + 1], "-v");
}

static void one_dash_is_a_word(void **state)
{
	struct line line = PARSE(false, "-", "-q");

	assert_int_equal(line.rest, 1);
	assert_false(line.given.quiet);
}

static void permute_moves_words_to_the_end_in_order(void **state)
{
	struct line line = PARSE(true, "one", "-q", "two", "--policy", "p", "three", "-eX");

	assert_int_equal(line.result, 0);
	assert_true(line.given.quiet);
	assert_string_equal(line.given.policy, "p");
	assert_int_equal(line.argc - line.rest, 3);
	assert_string_equal(line.argv[line.rest], "one");
	assert_string_equal(line.argv[line.rest + 1], "two");
	assert_string_equal(line.argv[line.rest + 2], "three");
}

static void nothing_given_is_fine(void **state)
{
	struct line line = parse(true, (const char *const[]){ NULL });

	assert_int_equal(line.result, 0);
	assert_int_equal(line.rest, 1);
}

static void an_unknown_option_names_the_nearest(void **state)
{
	struct line line = PARSE(false, "--polcy", "x");

	assert_int_equal(line.result, -EINVAL);
	assert_int_equal(line.err.code, ERR_USAGE);
	assert_non_null(strstr(line.err.message, "--polcy"));
	assert_non_null(strstr(line.err.hint, "--policy"));
	line = PARSE(false, "-z");
	assert_int_equal(line.result, -EINVAL);
	assert_non_null(strstr(line.err.message, "-z"));
	line = PARSE(false, "-qz");
	assert_int_equal(line.result, -EINVAL);
	/* A prefix is no spelling of an option: it would change its meaning with the next option that is
	 * added. */
	line = PARSE(false, "--pol", "x");
	assert_int_equal(line.result, -EINVAL);
}

static void missing_and_unwanted_values_are_refused(void **state)
{
	struct line line = PARSE(false, "--policy");

	assert_int_equal(line.result, -EINVAL);
	assert_non_null(strstr(line.err.message, "POLICY"));
	line = PARSE(false, "-p");
	assert_int_equal(line.result, -EINVAL);
	line = PARSE(false, "--quiet=yes");
	assert_int_equal(line.result, -EINVAL);
}

static void help_is_always_understood(void **state)
{
	struct line line = PARSE(false, "--help");

	assert_int_equal(line.result, 1);
	line = PARSE(false, "-h");
	assert_int_equal(line.result, 1);
	line = PARSE(false, "make", "--help");
	assert_int_equal(line.result, 0);
}

static void hostile_names_do_not_overflow(void **state)
{
	char name[4096] = "--";
	struct line line;

	memset(name + 2, 'a', sizeof name - 3);
	name[sizeof name - 1] = 0;
	line = PARSE(false, name);
	assert_int_equal(line.result, -EINVAL);
	line = PARSE(false, "--\033[31m");
	assert_int_equal(line.result, -EINVAL);
	assert_null(strchr(line.err.message, 033));
}

static void the_help_is_aligned(void **state)
{
	char text[1024] = "";
	int fds[2];
	ssize_t n;

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(options_print(options, ARRAY_SIZE(options), fds[1]), 0);
	n = read(fds[0], text, sizeof text - 1);
	assert_true(n > 0);
	assert_non_null(strstr(text, "  -p, --policy POLICY   use it\n"));
	assert_non_null(strstr(text, "      --report FILE     write it\n"));
	assert_non_null(strstr(text, "  -q, --quiet           say nothing\n"));
	close(fds[0]);
	close(fds[1]);
}

static void help_that_cannot_be_written_is_an_error(void **state)
{
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(options_print(options, ARRAY_SIZE(options), fd), -ENOSPC);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_spelling_of_a_value_works),
		cmocka_unit_test(a_value_that_may_be_missing_is_never_the_next_word),
		cmocka_unit_test(flags_cluster_and_end_in_a_value),
		cmocka_unit_test(lists_keep_their_order),
		cmocka_unit_test(lists_are_bounded),
		cmocka_unit_test(the_first_word_ends_the_options),
		cmocka_unit_test(two_dashes_end_the_options),
		cmocka_unit_test(one_dash_is_a_word),
		cmocka_unit_test(permute_moves_words_to_the_end_in_order),
		cmocka_unit_test(nothing_given_is_fine),
		cmocka_unit_test(an_unknown_option_names_the_nearest),
		cmocka_unit_test(missing_and_unwanted_values_are_refused),
		cmocka_unit_test(help_is_always_understood),
		cmocka_unit_test(hostile_names_do_not_overflow),
		cmocka_unit_test(the_help_is_aligned),
		cmocka_unit_test(help_that_cannot_be_written_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
