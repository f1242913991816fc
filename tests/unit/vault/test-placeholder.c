/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sodium.h>
#include <string.h>

#include "vault/placeholder.h"

static const char *make(const char *value)
{
	static char out[PLACEHOLDER_MAX + 1];

	placeholder_make((const uint8_t *)value, strlen(value), out);
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

static void test_the_shape_stays(void **state)
{
	static const char key[] = "sk-ant-api03-Zk3vQ9_mB-7xLpT2wRfYcD8hJnA5sGu1";
	const char *made = make(key);

	assert_int_equal(strlen(made), strlen(key));
	assert_memory_equal(made, "sk-ant-api03-", 13);
	assert_int_equal(made[19], '_');
	assert_int_equal(made[22], '-');
	assert_string_not_equal(made, key);
	assert_true(common(made + 13, key + 13) < 12);
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
		cmocka_unit_test(test_the_shape_stays),	    cmocka_unit_test(test_classes_stay),
		cmocka_unit_test(test_other_characters_go), cmocka_unit_test(test_user_and_password),
		cmocka_unit_test(test_short_ones_grow),	    cmocka_unit_test(test_long_ones_are_cut),
		cmocka_unit_test(test_each_is_another),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
