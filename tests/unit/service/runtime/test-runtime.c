/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/str.h"
#include "service/runtime/runtime.h"

/* Of Linux, unless somebody made it smaller: a driver that starts ahead gets its text in one write. */
enum { PIPE_SIZE = 64 << 10 };

static void every_language_has_a_command_line(void **state)
{
	static const char *const languages[] = { "python", "javascript", "typescript", "bash", "r", "java" };

	for (size_t i = 0; i < ARRAY_SIZE(languages); i++) {
		const struct runtime *runtime = runtime_find(languages[i]);
		const char *argv[RUNTIME_ARGV_MAX];
		char size[RUNTIME_SIZE_MAX];
		size_t count;

		assert_non_null(runtime);
		runtime_command(runtime, "mark", size, argv);
		count = strv_count(argv);
		assert_true(count >= 4 && count < RUNTIME_ARGV_MAX);
		assert_string_equal(argv[count - 1], "mark");
		assert_int_equal(strtoul(argv[count - 2], NULL, 10), runtime->size);
		assert_true(runtime->size < PIPE_SIZE);
	}
	assert_null(runtime_find("cobol"));
}

static void no_two_marks_are_alike(void **state)
{
	char one[RUNTIME_MARK_SIZE], other[RUNTIME_MARK_SIZE];

	assert_int_equal(runtime_make_mark(one), 0);
	assert_int_equal(runtime_make_mark(other), 0);
	assert_string_not_equal(one, other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_language_has_a_command_line),
		cmocka_unit_test(no_two_marks_are_alike),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
