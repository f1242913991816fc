/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "vault/secrets.h"

static int setup(void **state)
{
	(void)state;
	return sodium_init() < 0 ? -1 : 0;
}

static void test_names(void **state)
{
	static const char *const good[] = { "a", "Z", "0", "anthropic", "aws.key-id_2", "9.-_" };
	static const char *const bad[] = { "", ".a", "-a", "_a", "a b", "a/b", "a\n", "\xc3\xa4", "a:", "a=b" };
	char longest[SECRET_NAME_SIZE + 1];

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_true(secret_name_is_valid(good[i]));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(secret_name_is_valid(bad[i]));
	memset(longest, 'x', sizeof longest);
	longest[SECRET_NAME_SIZE] = 0;
	assert_false(secret_name_is_valid(longest));
	longest[SECRET_NAME_SIZE - 1] = 0;
	assert_true(secret_name_is_valid(longest));
}

static void test_set_find_remove(void **state)
{
	cleanup_secrets struct secrets *secrets = secrets_new();

	assert_int_equal(secrets_set(secrets, "b", "two", 3, 10), 0);
	assert_int_equal(secrets_set(secrets, "a", "one", 3, 11), 0);
	assert_int_equal(secrets_set(secrets, "c", "x\0y", 3, 12), 0);
	assert_int_equal(secrets_set(secrets, "b", "twice", 5, 20), 1);
	assert_int_equal(secrets->count, 3);
	assert_string_equal(secrets->items[0].name, "a");
	assert_string_equal(secrets->items[1].name, "b");
	assert_int_equal(secrets->items[1].made_s, 10);
	assert_int_equal(secrets->items[1].changed_s, 20);
	assert_memory_equal(secrets_find(secrets, "b")->value, "twice", 5);
	assert_memory_equal(secrets_find(secrets, "c")->value, "x\0y", 3);
	assert_null(secrets_find(secrets, "d"));
	assert_int_equal(secrets_remove(secrets, "d"), -ENOENT);
	assert_int_equal(secrets_remove(secrets, "a"), 0);
	assert_null(secrets_find(secrets, "a"));
	assert_int_equal(secrets->count, 2);
}

static void test_rename_keeps_the_order(void **state)
{
	cleanup_secrets struct secrets *secrets = secrets_new();

	assert_int_equal(secrets_set(secrets, "a", "1", 1, 10), 0);
	assert_int_equal(secrets_set(secrets, "b", "2", 1, 10), 0);
	assert_int_equal(secrets_rename(secrets, "a", "b", 30), -EEXIST);
	assert_int_equal(secrets_rename(secrets, "x", "y", 30), -ENOENT);
	assert_int_equal(secrets_rename(secrets, "a", "a/", 30), -EINVAL);
	assert_int_equal(secrets_rename(secrets, "a", "z", 30), 0);
	assert_string_equal(secrets->items[0].name, "b");
	assert_string_equal(secrets->items[1].name, "z");
	assert_int_equal(secrets->items[1].made_s, 10);
	assert_int_equal(secrets->items[1].changed_s, 30);
	assert_memory_equal(secrets->items[1].value, "1", 1);
}

static void test_bounds(void **state)
{
	cleanup_secrets struct secrets *secrets = secrets_new();
	static uint8_t value[SECRET_VALUE_MAX + 1];
	size_t count = 0;
	char name[16];

	assert_int_equal(secrets_set(secrets, "a", "", 0, 1), -EINVAL);
	assert_int_equal(secrets_set(secrets, "a", value, sizeof value, 1), -EINVAL);
	assert_int_equal(secrets_set(secrets, "a/b", "1", 1, 1), -EINVAL);
	assert_int_equal(secrets->count, 0);
	for (int r = 0; r == 0; count++) {
		snprintf(name, sizeof name, "large%zu", count);
		r = secrets_set(secrets, name, value, SECRET_VALUE_MAX, 1);
		assert_true(r == 0 || r == -EDQUOT);
	}
	assert_int_equal(secrets->count, SECRETS_BYTES_MAX / (SECRET_VALUE_MAX + 28));
	/* What is replaced makes room for itself. */
	assert_int_equal(secrets_set(secrets, "large0", value, SECRET_VALUE_MAX, 1), 1);
}

static void test_count_is_bounded(void **state)
{
	cleanup_secrets struct secrets *secrets = secrets_new();
	char name[16];

	for (size_t i = 0; i < SECRETS_MAX; i++) {
		snprintf(name, sizeof name, "n%zu", i);
		assert_int_equal(secrets_set(secrets, name, "v", 1, 1), 0);
	}
	assert_int_equal(secrets_set(secrets, "one-more", "v", 1, 1), -EDQUOT);
	assert_int_equal(secrets_set(secrets, "n7", "w", 1, 1), 1);
}

static void test_bytes_and_back(void **state)
{
	cleanup_secrets struct secrets *secrets = secrets_new(), *again = NULL, *none = NULL;
	uint8_t *bytes;
	size_t size;

	assert_int_equal(secrets_set(secrets, "b", "two", 3, 0x1122334455667788), 0);
	assert_int_equal(secrets_set(secrets, "a", "\0\xff", 2, 5), 0);
	assert_int_equal(secrets_format(secrets, &bytes, &size), 0);
	assert_int_equal(secrets_parse(bytes, size, &again), 0);
	assert_int_equal(again->count, 2);
	assert_string_equal(again->items[1].name, "b");
	assert_int_equal(again->items[1].made_s, 0x1122334455667788);
	assert_memory_equal(again->items[0].value, "\0\xff", 2);
	for (size_t cut = 0; cut < size; cut++)
		assert_int_equal(secrets_parse(bytes, cut, &none), -EBADMSG);
	sodium_free(bytes);
}

/* One item a row: the length byte, the name, two dates, the size, the value. */
#define DATES "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
#define TABLE(text) { (const uint8_t *)(text), sizeof(text) - 1 }

static void test_tables_that_are_none(void **state)
{
	static const struct {
		const uint8_t *bytes;
		size_t size;
	} bad[] = {
		TABLE(""), TABLE("\0\0\0"), TABLE("\0\0\0\0x"), TABLE("\1\0\0\0"), TABLE("\1\1\0\0"),
		TABLE("\xff\xff\xff\xff"),
		TABLE("\1\0\0\0\0" DATES "\1\0\0\0v"),                            /* no name */
		TABLE("\1\0\0\0\1a" DATES "\0\0\0\0"),                            /* no value */
		TABLE("\1\0\0\0\1a" DATES "\2\0\0\0v"),                           /* ends early */
		TABLE("\1\0\0\0\1a" DATES "\xff\xff\xff\xffv"),
		TABLE("\1\0\0\0\2a\0" DATES "\1\0\0\0v"),                         /* a NUL in the name */
		TABLE("\1\0\0\0\1/" DATES "\1\0\0\0v"),
		TABLE("\1\0\0\0\x41" DATES DATES DATES DATES DATES "\1\0\0\0v"),
		TABLE("\2\0\0\0\1b" DATES "\1\0\0\0v" "\1a" DATES "\1\0\0\0v"),   /* falling */
		TABLE("\2\0\0\0\1a" DATES "\1\0\0\0v" "\1a" DATES "\1\0\0\0w"),   /* twice */
		TABLE("\1\0\0\0\1a" DATES "\1\0\0\0vw"),                          /* more behind it */
	};
	struct secrets *secrets = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(secrets_parse(bad[i].bytes, bad[i].size, &secrets), -EBADMSG);
	assert_null(secrets);
	assert_int_equal(secrets_parse((const uint8_t *)"\1\0\0\0\1a" DATES "\1\0\0\0v", 27, &secrets), 0);
	secrets_free(secrets);
}

static void test_size_classes(void **state)
{
	assert_string_equal(secret_size_class(1), "1-16");
	assert_string_equal(secret_size_class(16), "1-16");
	assert_string_equal(secret_size_class(17), "17-64");
	assert_string_equal(secret_size_class(1024), "257-1024");
	assert_string_equal(secret_size_class(SECRET_VALUE_MAX), "1025-16384");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names), cmocka_unit_test(test_set_find_remove),
		cmocka_unit_test(test_rename_keeps_the_order), cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_count_is_bounded), cmocka_unit_test(test_bytes_and_back),
		cmocka_unit_test(test_tables_that_are_none), cmocka_unit_test(test_size_classes),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
