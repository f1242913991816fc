/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "base/str.h"
#include "session/labels.h"

enum { NAME_MAX_SIZE = 63 };

static char long_name[NAME_MAX_SIZE + 3], longest_name[NAME_MAX_SIZE + 2];

static int join_one(const char *label)
{
	const char *const labels[] = { label, NULL };
	cleanup_free char *text = NULL;

	return labels_join(labels, &text);
}

static void the_form_of_one_is_checked(void **state)
{
	static const struct {
		const char *label;
		int result;
	} cases[] = {
		{ "a=1", 0 },
		{ "a=", 0 },
		{ "A.b_c/d-9=x=y z", 0 },
		{ "a=\xc3\xa4", 0 },
		{ longest_name, 0 },
		{ long_name, -EINVAL },
		{ "", -EINVAL },
		{ "a", -EINVAL },
		{ "=1", -EINVAL },
		{ "a b=1", -EINVAL },
		{ "a\n=1", -EINVAL },
		{ "a=1\nb=2", -EINVAL },
		{ "a=\t", -EINVAL },
		{ "a=\x7f", -EINVAL },
		{ "\xc3\xa4=1", -EINVAL },
	};

	memset(longest_name, 'n', NAME_MAX_SIZE);
	longest_name[NAME_MAX_SIZE] = '=';
	memset(long_name, 'n', NAME_MAX_SIZE + 1);
	long_name[NAME_MAX_SIZE + 1] = '=';
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(join_one(cases[i].label), cases[i].result);
}

static void a_name_comes_once(void **state)
{
	const char *const twice[] = { "a=1", "b=1", "a=2", NULL }, *const prefix[] = { "ab=1", "a=1", "abc=", NULL };
	cleanup_free char *text = NULL;

	assert_int_equal(labels_join(twice, &text), -EINVAL);
	assert_null(text);
	assert_int_equal(labels_join(prefix, &text), 0);
	assert_string_equal(text, "ab=1\na=1\nabc=");
}

static void their_number_is_bounded(void **state)
{
	char memory[LABELS_MAX + 1][8];
	const char *labels[LABELS_MAX + 2] = { NULL };
	char *list[LABELS_MAX + 1], *text = NULL, *copy;

	for (int i = 0; i <= LABELS_MAX; i++) {
		assert_int_equal(str_format(memory[i], sizeof memory[i], "n%d=", i), 0);
		labels[i] = memory[i];
	}
	assert_int_equal(labels_join(labels, &text), -E2BIG);
	assert_null(text);
	labels[LABELS_MAX] = NULL;
	assert_int_equal(labels_join(labels, &text), 0);
	copy = labels_split(text, list);
	assert_non_null(copy);
	for (int i = 0; i < LABELS_MAX; i++)
		assert_string_equal(list[i], memory[i]);
	assert_null(list[LABELS_MAX]);
	free(copy);
	free(text);
}

/* A record that somebody wrote may have more lines than labels_join() makes. */
static void a_split_is_bounded_too(void **state)
{
	char text[4 * LABELS_MAX], *list[LABELS_MAX + 1];
	char *copy;

	memset(text, '\n', sizeof text);
	text[sizeof text - 1] = 0;
	copy = labels_split(text, list);
	assert_non_null(copy);
	assert_null(list[LABELS_MAX]);
	free(copy);
	copy = labels_split("", list);
	assert_non_null(copy);
	assert_null(list[0]);
	free(copy);
	assert_null(labels_split(NULL, list));
	assert_null(list[0]);
}

static void their_size_is_bounded(void **state)
{
	static char label[LABELS_SIZE_MAX + 2];

	memset(label, 'v', sizeof label - 1);
	memcpy(label, "a=", 2);
	assert_int_equal(join_one(label), -E2BIG);
	label[LABELS_SIZE_MAX] = 0;
	assert_int_equal(join_one(label), 0);
}

static void none_are_an_empty_text(void **state)
{
	const char *const none[] = { NULL };
	char *text = NULL;

	assert_int_equal(labels_join(NULL, &text), 0);
	assert_string_equal(text, "");
	free(text);
	assert_int_equal(labels_join(none, &text), 0);
	assert_string_equal(text, "");
	free(text);
}

static bool have(const char *text, const char *label)
{
	const char *const labels[] = { label, NULL };

	return labels_have(text, labels);
}

static void only_whole_ones_are_found(void **state)
{
	const char *const both[] = { "a=1", "b=22", NULL }, *const one_more[] = { "a=1", "c=", NULL };

	assert_true(have("a=1\nb=22", "a=1"));
	assert_true(have("a=1\nb=22", "b=22"));
	assert_false(have("a=1\nb=22", "b=2"));
	assert_false(have("a=1\nb=22", "=22"));
	assert_false(have("xa=1", "a=1"));
	assert_false(have("", "a=1"));
	assert_false(have(NULL, "a=1"));
	assert_true(labels_have("a=1\nb=22", both));
	assert_false(labels_have("a=1\nb=22", one_more));
	assert_true(labels_have("a=1", NULL));
	/* What is no label is in none, also where it has the bytes of two. */
	assert_false(have("a=1\nb=22", "a=1\nb=22"));
	assert_false(have("a=1\n\nb=22", ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_form_of_one_is_checked),
		cmocka_unit_test(a_name_comes_once),
		cmocka_unit_test(their_number_is_bounded),
		cmocka_unit_test(a_split_is_bounded_too),
		cmocka_unit_test(their_size_is_bounded),
		cmocka_unit_test(none_are_an_empty_text),
		cmocka_unit_test(only_whole_ones_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
