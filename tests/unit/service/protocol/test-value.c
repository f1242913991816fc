/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "service/protocol/value.h"

static json_t *parse(const char *text)
{
	char why[VALUE_WHY_SIZE] = "";
	json_t *value = NULL;

	if (value_parse(text, strlen(text), &value, why) < 0)
		assert_true(why[0]);
	return value;
}

static void test_refuses_what_is_no_object(void **state)
{
	static const char *const bad[] = { "{",
					   "[]",
					   "1",
					   "{\"a\":1,\"a\":2}",
					   "{\"a\":\"\\u0000\"}",
					   "{}x",
					   "{\"a\":\"\xff\"}",
					   "[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
					   "{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]}" };
	json_t *value;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_null(parse(bad[i]));
	value = parse("");
	assert_non_null(value);
	json_decref(value);
}

static void test_proto3_names_and_types(void **state)
{
	static const struct value_word words[] = { { "SIGNAL_SIGKILL", 9 }, { NULL } };
	char why[VALUE_WHY_SIZE];
	json_t *value = parse(
		"{\"exit_code\":\"12\",\"big\":9007199254740993,\"real\":3.0,\"half\":0.5,\"none\":null,"
		"\"neg\":-1,\"signal\":\"SIGNAL_SIGKILL\",\"number\":15,\"word\":\"X\",\"text\":\"t\",\"un\":{}}");
	const char *text = NULL;
	uint64_t number = 0;
	uint32_t signal = 0;

	assert_int_equal(value_number(value, "exitCode", 100, &number, why), 1);
	assert_int_equal(number, 12);
	assert_int_equal(value_number(value, "big", UINT64_MAX, &number, why), 1);
	assert_int_equal(number, 9007199254740993);
	assert_int_equal(value_number(value, "real", 100, &number, why), 1);
	assert_int_equal(number, 3);
	assert_int_equal(value_number(value, "none", 100, &number, why), 0);
	assert_int_equal(value_number(value, "half", 100, &number, why), -EINVAL);
	assert_int_equal(value_number(value, "neg", 100, &number, why), -EINVAL);
	assert_int_equal(value_number(value, "big", 100, &number, why), -EINVAL);
	assert_int_equal(value_enum(value, "signal", words, &signal, why), 1);
	assert_int_equal(signal, 9);
	assert_int_equal(value_enum(value, "number", words, &signal, why), 1);
	assert_int_equal(signal, 15);
	assert_int_equal(value_enum(value, "word", words, &signal, why), -EINVAL);
	assert_int_equal(value_string(value, "text", &text, why), 1);
	assert_string_equal(text, "t");
	assert_int_equal(value_string(value, "un", &text, why), -EINVAL);
	assert_string_equal(why, "\"un\" is no string");
	json_decref(value);
}

static void test_environment(void **state)
{
	char why[VALUE_WHY_SIZE];
	json_t *value = parse("{\"good\":{\"A\":\"1=2\",\"B\":\"\"},\"bad\":{\"A=B\":\"1\"},\"odd\":{\"A\":1}}");
	char **env = value_environment(value_member(value, "good"), 4, why);

	assert_string_equal(env[0], "A=1=2");
	assert_string_equal(env[1], "B=");
	assert_null(env[2]);
	for (size_t i = 0; i < 2; i++)
		free(env[i]);
	free(env);
	assert_null(value_environment(value_member(value, "good"), 1, why));
	assert_null(value_environment(value_member(value, "bad"), 4, why));
	assert_null(value_environment(value_member(value, "odd"), 4, why));
	json_decref(value);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refuses_what_is_no_object),
		cmocka_unit_test(test_proto3_names_and_types),
		cmocka_unit_test(test_environment),
	};

	value_prepare();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
