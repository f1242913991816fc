/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"

static void returns_what_its_caller_forwards(void **state)
{
	struct err err;

	assert_int_equal(err_set(&err, ERR_WALL, EACCES, "landlock", "no"), -EACCES);
	assert_int_equal(err_set(&err, ERR_USAGE, 0, "options", "no"), -EINVAL);
	assert_int_equal(err_set(NULL, ERR_WALL, EPERM, "x", "%s", "no"), -EPERM);
	err_hint(NULL, "%s", "nothing happens");
	assert_int_equal(err.code, ERR_USAGE);
	assert_int_equal(err.errnum, 0);
}

static void formats_like_printf(void **state)
{
	char expected[ERR_MESSAGE_SIZE];
	struct err err;

	err_set(&err, ERR_INTERNAL, EIO, "stage", "%s %d %d %u %zu %x %c %%", "text", -5, INT_MIN, UINT_MAX,
		(size_t)7, 0xbeefu, 'c');
	snprintf(expected, sizeof expected, "%s %d %d %u %zu %x %c %%", "text", -5, INT_MIN, UINT_MAX,
		 (size_t)7, 0xbeefu, 'c');
	assert_string_equal(err.message, expected);
	assert_string_equal(err.stage, "stage");
	assert_string_equal(err.hint, "");
	err_hint(&err, "do %s", "this");
	assert_string_equal(err.hint, "do this");
	err_set(&err, ERR_INTERNAL, EIO, "stage", "again");
	assert_string_equal(err.hint, "");
}

static void everything_is_cut_to_fit(void **state)
{
	char longest[4096];
	struct err err;

	memset(longest, 'x', sizeof longest - 1);
	longest[sizeof longest - 1] = 0;
	err_set(&err, ERR_INTERNAL, EIO, longest, "%s", longest);
	err_hint(&err, "%s", longest);
	assert_int_equal(strlen(err.stage), ERR_STAGE_SIZE - 1);
	assert_int_equal(strlen(err.message), ERR_MESSAGE_SIZE - 1);
	assert_int_equal(strlen(err.hint), ERR_HINT_SIZE - 1);
	assert_true(sizeof err < PIPE_BUF);
}

static void control_bytes_do_not_get_through(void **state)
{
	struct err err;

	err_set(&err, ERR_NOT_FOUND, ENOENT, "run", "%s", "a\n\x1b[2J\x7f");
	assert_string_equal(err.message, "a??[2J?");
}

static unsigned format(char *out, unsigned size, const char *text, ...)
{
	va_list args;
	unsigned length;

	va_start(args, text);
	length = err_vformat(out, size, text, args);
	va_end(args);
	return length;
}

static void formatter_ends_at_what_it_does_not_know(void **state)
{
	char out[16] = "untouched";

	assert_int_equal(format(out, sizeof out, "a%fb", 1.0), 1);
	assert_string_equal(out, "a");
	assert_int_equal(format(out, sizeof out, "a%", 1), 1);
	assert_int_equal(format(out, sizeof out, "a%z", 1), 1);
	assert_int_equal(format(out, 1, "abc"), 0);
	assert_string_equal(out, "");
	assert_int_equal(format(NULL, 0, "abc"), 0);
	assert_int_equal(format(out, sizeof out, "%s", NULL), 6);
}

static void exit_statuses(void **state)
{
	for (int code = 0; code < ERR_CODE_COUNT; code++) {
		struct err err = { .code = code };

		assert_int_equal(err_exit_status(&err),
				 code == ERR_NOT_FOUND ? 127 : code == ERR_NOT_RUNNABLE ? 126 : 125);
	}
	assert_string_equal(err_errno_name(ENOSPC), "ENOSPC");
	assert_string_equal(err_errno_name(4095), "errno");
}

static void quoted_text_is_escaped_and_cut(void **state)
{
	char out[ERR_QUOTE_SIZE], all[ERR_QUOTE_SIZE + 1] = { 0 };

	memset(all, 'a', sizeof all - 1);
	assert_string_equal(err_quote(out, "/a b"), "/a b");
	assert_string_equal(err_quote(out, "/\033[31m\n"), "/\\x1b[31m\\x0a");
	assert_true(strlen(err_quote(out, all)) < ERR_QUOTE_SIZE);
	assert_true(strncmp(out, all, 200) == 0);
}

static void a_program_that_cannot_start_says_what_helps(void **state)
{
	struct err err;

	assert_int_equal(err_not_started("log", "atoll-log", ENOENT, &err), -ENOENT);
	assert_string_equal(err.hint, "atoll's programs must lie in one directory; install atoll again");
	assert_int_equal(err_not_started("log", "atoll-log", EAGAIN, &err), -EAGAIN);
	assert_non_null(strstr(err.hint, "ulimit -u"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quoted_text_is_escaped_and_cut),
		cmocka_unit_test(a_program_that_cannot_start_says_what_helps),
		cmocka_unit_test(returns_what_its_caller_forwards),
		cmocka_unit_test(formats_like_printf),
		cmocka_unit_test(everything_is_cut_to_fit),
		cmocka_unit_test(control_bytes_do_not_get_through),
		cmocka_unit_test(formatter_ends_at_what_it_does_not_know),
		cmocka_unit_test(exit_statuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
