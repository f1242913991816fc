/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "wire/secret.h"

static int get(struct buf *message, const char **ret_name, const char **ret_value, size_t *ret_size)
{
	struct frame frame;

	assert_int_equal(frame_open(&frame, message->bytes, message->size), 0);
	return secret_get_value(&frame, ret_name, ret_value, ret_size);
}

static void test_there_and_back(void **state)
{
	cleanup_buf struct buf message;
	const char *name, *value;
	size_t size;

	buf_init(&message, 4096);
	assert_int_equal(secret_put_value(&message, "key", "s3\xff", 3), 0);
	assert_int_equal(get(&message, &name, &value, &size), 0);
	assert_string_equal(name, "key");
	assert_int_equal(size, 3);
	assert_memory_equal(value, "s3\xff", 3);
}

static void test_values_that_are_none(void **state)
{
	static const struct {
		const char *name, *value;
		size_t size;
	} bad[] = { { "", "v", 1 }, { NULL, "v", 1 }, { "n", "", 0 }, { "n", "a\0b", 3 }, { "n", "a\0", 2 } };
	cleanup_buf struct buf message;
	const char *name, *value;
	size_t size;

	buf_init(&message, 4096);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(secret_put_value(&message, bad[i].name, bad[i].value, bad[i].size), 0);
		assert_int_equal(get(&message, &name, &value, &size), -EBADMSG);
	}
	assert_int_equal(secret_put_end(&message), 0);
	assert_int_equal(get(&message, &name, &value, &size), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_values_that_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
