/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "wire/secret.h"

static int get(struct buf *message, struct secret_value *ret_value)
{
	struct frame frame;

	assert_int_equal(frame_open(&frame, message->bytes, message->size), 0);
	return secret_get_value(&frame, ret_value);
}

static void test_there_and_back(void **state)
{
	cleanup_buf struct buf message;
	const char *name, *placeholder;
	struct secret_value value;
	struct frame frame;

	buf_init(&message, 4096);
	assert_int_equal(secret_put_value(&message, &(struct secret_value){ "key", "s3\xff", 3, "p" }), 0);
	assert_int_equal(get(&message, &value), 0);
	assert_string_equal(value.name, "key");
	assert_int_equal(value.size, 3);
	assert_memory_equal(value.value, "s3\xff", 3);
	assert_string_equal(value.placeholder, "p");
	assert_int_equal(secret_put_placeholder(&message, "key", "p"), 0);
	assert_int_equal(frame_open(&frame, message.bytes, message.size), 0);
	assert_int_equal(secret_get_placeholder(&frame, &name, &placeholder), 0);
	assert_string_equal(name, "key");
	assert_string_equal(placeholder, "p");
}

static void test_values_that_are_none(void **state)
{
	static char long_one[SECRET_PLACEHOLDER_MAX + 2];
	static const struct secret_value bad[] = {
		{ "", "v", 1, "p" },	  { NULL, "v", 1, "p" },    { "n", "", 0, "p" },  { "n", "a\0b", 3, "p" },
		{ "n", "a\0", 2, "p" },	  { "n", "v", 1, NULL },    { "n", "v", 1, "" },  { "n", "v", 1, long_one },
	};
	cleanup_buf struct buf message;
	struct secret_value value;

	buf_init(&message, 4096);
	memset(long_one, 'x', sizeof long_one - 1);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(secret_put_value(&message, &bad[i]), 0);
		assert_int_equal(get(&message, &value), -EBADMSG);
	}
	assert_int_equal(secret_put_end(&message), 0);
	assert_int_equal(get(&message, &value), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_values_that_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
