/* SPDX-License-Identifier: Apache-2.0 */

/* What a program of ours says and returns at its end. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/program.h"

/* The status, and in said[] what went to stderr meanwhile. */
static int status_of(int r, const struct err *err, char *said, size_t size)
{
	int ends[2], before = dup(STDERR_FILENO), status;
	ssize_t n;

	assert_int_equal(pipe(ends), 0);
	assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
	close(ends[1]);
	status = program_status(r, err);
	dup2(before, STDERR_FILENO);
	close(before);
	n = read(ends[0], said, size - 1);
	assert_true(n >= 0);
	said[n] = 0;
	close(ends[0]);
	return status;
}

static void what_went_well_is_silent(void **state)
{
	struct err err = { 0 };
	char said[1024];

	assert_int_equal(status_of(0, &err, said, sizeof said), 0);
	assert_string_equal(said, "");
	assert_int_equal(status_of(3, &err, said, sizeof said), 3);
	assert_string_equal(said, "");
}

static void an_error_is_one_line(void **state)
{
	struct err err;
	char said[1024];

	err_set(&err, ERR_STATE, EACCES, "log", "cannot read %s", "it");
	assert_int_equal(status_of(-EACCES, &err, said, sizeof said), 125);
	assert_string_equal(said, "atoll: log: cannot read it\n");
	err_set(&err, ERR_NOT_FOUND, ENOENT, "log", "none");
	err_hint(&err, "make one");
	assert_int_equal(status_of(-ENOENT, &err, said, sizeof said), 127);
	assert_string_equal(said, "atoll: log: none; make one\n");
}

static void an_error_without_words_names_its_errno(void **state)
{
	struct err err = { 0 };
	char said[1024];

	assert_int_equal(status_of(-EMFILE, &err, said, sizeof said), 125);
	assert_non_null(strstr(said, "EMFILE"));
}

static int begin_well(void)
{
	return 0;
}

static int begin_badly(void)
{
	return -EMFILE;
}

static int count_words(int argc, char **argv, struct err *err)
{
	return argv[argc] ? err_set(err, ERR_USAGE, EINVAL, "test", "no end") : argc;
}

static void a_program_that_cannot_begin_does_not_run(void **state)
{
	char word[] = "program", *words[] = { word, NULL };

	assert_int_equal(program_main(1, words, begin_well, count_words), 1);
	assert_int_equal(program_main(1, words, begin_badly, count_words), 125);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_that_cannot_begin_does_not_run),
		cmocka_unit_test(what_went_well_is_silent),
		cmocka_unit_test(an_error_is_one_line),
		cmocka_unit_test(an_error_without_words_names_its_errno),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
