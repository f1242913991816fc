/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "vault/placeholder.h"

static uint8_t key[PLACEHOLDER_KEY_SIZE];

static void make_of(const char *project, const char *name, const char *value, char out[PLACEHOLDER_MAX + 1])
{
	placeholder_make(&(struct placeholder_of){ key, project, name }, (const uint8_t *)value, strlen(value), out);
}

/* Another one each time: by another name. */
static const char *make(const char *value)
{
	static char out[PLACEHOLDER_MAX + 1];
	static unsigned count;
	char name[32];

	snprintf(name, sizeof name, "n%u", count++);
	make_of("/p", name, value, out);
	return out;
}

/* How many characters stand where they stood. */
static size_t common(const char *a, const char *b)
{
	size_t count = 0;

	for (size_t i = 0; a[i] && b[i]; i++)
		count += a[i] == b[i];
	return count;
}

/* An agent that remembers its key is asked once; what stands in it tells nothing of the value. */
static void test_it_is_stable_for_a_project_and_not_by_the_value(void **state)
{
	static const char value[] = "sk-Zk3vQ9mBx7LpT2wRfYcD8hJn", other[] = "sk-aB1cD2eF3gH4iJ5kL6mN7oPq";
	char first[PLACEHOLDER_MAX + 1], again[PLACEHOLDER_MAX + 1];

	make_of("/p", "a", value, first);
	make_of("/p", "a", value, again);
	assert_string_equal(first, again);
	make_of("/p", "a", other, again);
	assert_string_equal(first, again);
	make_of("/q", "a", value, again);
	assert_true(common(first + 3, again + 3) < 8);
	make_of("/p", "b", value, again);
	assert_true(common(first + 3, again + 3) < 8);
	make_of("/p/a", "", value, again);
	assert_string_not_equal(first, again);
	key[0] ^= 1;
	make_of("/p", "a", value, again);
	key[0] ^= 1;
	assert_true(common(first + 3, again + 3) < 8);
}

static void test_the_shape_stays(void **state)
{
	static const char secret[] = "sk-ant-api03-Zk3vQ9_mB-7xLpT2wRfYcD8hJnA5sGu1";
	const char *made = make(secret);

	assert_int_equal(strlen(made), strlen(secret));
	assert_memory_equal(made, "sk-ant-api03-", 13);
	assert_int_equal(made[19], '_');
	assert_int_equal(made[22], '-');
	assert_string_not_equal(made, secret);
	assert_true(common(made + 13, secret + 13) < 12);
}

static void test_classes_stay(void **state)
{
	static const struct {
		const char *value, *class;
	} cases[] = {
		{ "0123456789abcdef0123", "0123456789abcdef" },
		{ "0123456789ABCDEF0123", "0123456789ABCDEF" },
		{ "01234567890123456789", "0123456789" },
		{ "thequickbrownfoxjumps", "abcdefghijklmnopqrstuvwxyz" },
		{ "THEQUICKBROWNFOX2345", "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *made = make(cases[i].value);

		assert_int_equal(strspn(made, cases[i].class), strlen(cases[i].value));
		assert_int_equal(strlen(made), strlen(cases[i].value));
	}
}

/* Nothing of the value but separators: what is rare in it would tell much. */
static void test_other_characters_go(void **state)
{
	const char *made = make("pass@word!with+some/stuff$in=it==");

	assert_null(strpbrk(made, "@!+/$"));
	assert_int_equal(strlen(made), 33);
	assert_string_equal(made + 31, "==");
}

static void test_user_and_password(void **state)
{
	const char *made = make("AKIAIOSFODNN7EXAMPLE:wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY");

	assert_memory_equal(made, "AKIA", 4);
	assert_int_equal(made[20], ':');
	assert_int_equal(strlen(made), 61);
}

/* A short secret would be told by its shape, or met by accident. */
static void test_short_ones_grow(void **state)
{
	static const char *const values[] = { "a", "1234", "--", "a:b", "=", "sk-ab" };

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		const char *made = make(values[i]);

		assert_true(strlen(made) >= PLACEHOLDER_RANDOM_MIN);
		assert_string_not_equal(made, values[i]);
	}
	assert_int_equal(make("a:b")[1], ':');
}

static void test_long_ones_are_cut(void **state)
{
	static char value[4 * PLACEHOLDER_MAX];

	memset(value, 'x', sizeof value - 1);
	assert_int_equal(strlen(make(value)), PLACEHOLDER_MAX);
	memset(value, '-', sizeof value - 1);
	assert_int_equal(strlen(make(value)), PLACEHOLDER_MAX);
	assert_int_equal(strspn(make(value), "-"), PLACEHOLDER_MAX - PLACEHOLDER_RANDOM_MIN);
}

static void test_each_is_another(void **state)
{
	char first[PLACEHOLDER_MAX + 1];

	memcpy(first, make("0123456789012345"), 17);
	assert_string_not_equal(first, make("0123456789012345"));
}

static int start(void **state)
{
	return sodium_init() < 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_is_stable_for_a_project_and_not_by_the_value),
		cmocka_unit_test(test_the_shape_stays),	    cmocka_unit_test(test_classes_stay),
		cmocka_unit_test(test_other_characters_go), cmocka_unit_test(test_user_and_password),
		cmocka_unit_test(test_short_ones_grow),	    cmocka_unit_test(test_long_ones_are_cut),
		cmocka_unit_test(test_each_is_another),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
