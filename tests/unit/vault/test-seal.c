/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sodium.h>
#include <stdbool.h>
#include <string.h>

#include "vault/seal.h"

static struct seal_key *key;

static int setup(void **state)
{
	(void)state;
	key = sodium_init() < 0 ? NULL : seal_key_new();
	return key ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	sodium_free(key);
	return 0;
}

static bool is_same(const struct seal_key *a, const struct seal_key *b)
{
	return memcmp(a, b, sizeof *a) == 0;
}

static void test_plain_key(void **state)
{
	uint8_t file[SEAL_KEY_FILE_SIZE], id[SEAL_ID_SIZE];
	struct seal_key again;
	enum seal_kind kind;

	assert_int_equal(seal_key_format(key, NULL, 0, file), 0);
	assert_int_equal(seal_key_peek(file, sizeof file, &kind, id), 0);
	assert_int_equal(kind, SEAL_PLAIN);
	assert_memory_equal(id, key->id, sizeof id);
	assert_int_equal(seal_key_open(file, sizeof file, NULL, 0, &again), 0);
	assert_true(is_same(key, &again));
}

static void test_plain_key_is_damaged_at_every_bit(void **state)
{
	uint8_t file[SEAL_KEY_FILE_SIZE];
	struct seal_key again;

	assert_int_equal(seal_key_format(key, NULL, 0, file), 0);
	for (size_t bit = 0; bit < 8 * sizeof file; bit++) {
		file[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_true(seal_key_open(file, sizeof file, NULL, 0, &again) < 0);
		file[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	for (size_t cut = 0; cut < sizeof file; cut++)
		assert_int_equal(seal_key_open(file, cut, NULL, 0, &again), -EBADMSG);
}

static void test_later_version(void **state)
{
	uint8_t file[SEAL_KEY_FILE_SIZE];
	struct seal_key again;

	assert_int_equal(seal_key_format(key, NULL, 0, file), 0);
	file[8] = 2;
	assert_int_equal(seal_key_open(file, sizeof file, NULL, 0, &again), -EPROTONOSUPPORT);
	/* Whatever length it may have. */
	assert_int_equal(seal_key_open(file, 12, NULL, 0, &again), -EPROTONOSUPPORT);
}

static void test_passphrase(void **state)
{
	uint8_t file[SEAL_KEY_FILE_SIZE], other[SEAL_KEY_FILE_SIZE], id[SEAL_ID_SIZE];
	struct seal_key again;
	enum seal_kind kind;

	assert_int_equal(seal_key_format(key, "correct horse", 13, file), 0);
	assert_int_equal(seal_key_peek(file, sizeof file, &kind, id), 0);
	assert_int_equal(kind, SEAL_PASSPHRASE);
	assert_null(memmem(file, sizeof file, key->bytes, SEAL_KEY_SIZE));
	assert_int_equal(seal_key_open(file, sizeof file, "correct horse", 13, &again), 0);
	assert_true(is_same(key, &again));
	assert_int_equal(seal_key_open(file, sizeof file, "correct horsf", 13, &again), -EACCES);
	assert_int_equal(seal_key_open(file, sizeof file, "correct horse ", 14, &again), -EACCES);
	assert_int_equal(seal_key_open(file, sizeof file, NULL, 0, &again), -EACCES);
	/* Salted: the same passphrase makes another file. */
	assert_int_equal(seal_key_format(key, "correct horse", 13, other), 0);
	assert_memory_not_equal(file + 48, other + 48, 16);
	assert_memory_not_equal(file + 88, other + 88, SEAL_KEY_SIZE);
}

/* One byte of each field: every attempt costs a derivation. */
static void test_wrapped_key_is_damaged_in_every_field(void **state)
{
	static const size_t fields[] = { 0, 8, 12, 16, 31, 32, 48, 63, 64, 87, 88, 119, 120, 135 };
	uint8_t file[SEAL_KEY_FILE_SIZE];
	struct seal_key again;

	assert_int_equal(seal_key_format(key, "pass", 4, file), 0);
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		file[fields[i]] ^= 1;
		assert_true(seal_key_open(file, sizeof file, "pass", 4, &again) < 0);
		file[fields[i]] ^= 1;
	}
	assert_int_equal(seal_key_open(file, sizeof file, "pass", 4, &again), 0);
}

static void test_the_cost_is_bounded(void **state)
{
	uint8_t file[SEAL_KEY_FILE_SIZE];
	struct seal_key again;

	assert_int_equal(seal_key_format(key, "pass", 4, file), 0);
	file[33] = 1;   /* 260 passes */
	assert_int_equal(seal_key_open(file, sizeof file, "pass", 4, &again), -EBADMSG);
	file[33] = 0;
	file[45] = 1;   /* a terabyte */
	assert_int_equal(seal_key_open(file, sizeof file, "pass", 4, &again), -EBADMSG);
	file[45] = 0;
	memset(file + 40, 0, 8);
	assert_int_equal(seal_key_open(file, sizeof file, "pass", 4, &again), -EBADMSG);
}

static void test_sealed_and_opened(void **state)
{
	static const size_t sizes[] = { 0, 1, 4095, 4096, 4097, 1 << 20 };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		uint8_t *bytes = calloc(1, sizes[i] + 1), *file, *opened;
		size_t file_size, size;

		memset(bytes, 0x80, sizes[i]);
		assert_int_equal(seal_close(key, bytes, sizes[i], &file, &file_size), 0);
		assert_int_equal((file_size - 72) % 4096, 0);
		assert_int_equal(seal_open(key, file, file_size, &opened, &size), 0);
		assert_int_equal(size, sizes[i]);
		assert_memory_equal(opened, bytes, size);
		sodium_free(opened);
		free(file);
		free(bytes);
	}
}

static void test_sealed_is_bounded(void **state)
{
	uint8_t *bytes = calloc(1, SEAL_FILE_MAX), *file;
	size_t size;

	assert_int_equal(seal_close(key, bytes, SEAL_FILE_MAX, &file, &size), -EFBIG);
	free(bytes);
}

static void test_sealed_is_damaged_at_every_byte(void **state)
{
	uint8_t *file, *opened;
	size_t file_size, size;

	assert_int_equal(seal_close(key, (const uint8_t *)"secret", 6, &file, &file_size), 0);
	assert_null(memmem(file, file_size, "secret", 6));
	for (size_t at = 0; at < file_size; at++) {
		file[at] ^= 0x10;
		assert_true(seal_open(key, file, file_size, &opened, &size) < 0);
		file[at] ^= 0x10;
	}
	for (size_t cut = 0; cut < file_size; cut++)
		assert_true(seal_open(key, file, cut, &opened, &size) < 0);
	free(file);
}

static void test_another_key(void **state)
{
	struct seal_key *other = seal_key_new();
	uint8_t *file, *opened;
	size_t file_size, size;

	assert_int_equal(seal_close(key, (const uint8_t *)"secret", 6, &file, &file_size), 0);
	assert_int_equal(seal_open(other, file, file_size, &opened, &size), -ENOKEY);
	/* Its id does not make it the right one. */
	memcpy(other->id, key->id, SEAL_ID_SIZE);
	assert_int_equal(seal_open(other, file, file_size, &opened, &size), -EBADMSG);
	free(file);
	sodium_free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain_key), cmocka_unit_test(test_plain_key_is_damaged_at_every_bit),
		cmocka_unit_test(test_later_version), cmocka_unit_test(test_passphrase),
		cmocka_unit_test(test_wrapped_key_is_damaged_in_every_field),
		cmocka_unit_test(test_the_cost_is_bounded),
		cmocka_unit_test(test_sealed_and_opened), cmocka_unit_test(test_sealed_is_bounded),
		cmocka_unit_test(test_sealed_is_damaged_at_every_byte), cmocka_unit_test(test_another_key),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
