/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The vault's files from arbitrary bytes: as a key file, as sealed secrets, and, because the seal would keep a fuzzer
 * out, as the table itself. A table that is accepted gives its own bytes again, also through the seal.
 */

#include <sodium.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vault/seal.h"
#include "vault/secrets.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check_key_file(const uint8_t *bytes, size_t size)
{
	uint8_t id[SEAL_ID_SIZE], again[SEAL_KEY_FILE_SIZE];
	struct seal_key key;
	enum seal_kind kind;

	if (seal_key_peek(bytes, size, &kind, id) < 0)
		return;
	require(kind < SEAL_KIND_COUNT && size == SEAL_KEY_FILE_SIZE);
	/* A passphrase would cost a tenth of a second each time. */
	if (kind == SEAL_PLAIN && seal_key_open(bytes, size, NULL, 0, &key) == 0)
		require(seal_key_format(&key, NULL, 0, again) == 0 &&
			memcmp(again + 88, bytes + 88, SEAL_KEY_SIZE) == 0);
}

static void check_sealed(const uint8_t *bytes, size_t size)
{
	static const struct seal_key zero;
	uint8_t *opened;
	size_t opened_size;

	require(seal_open(&zero, bytes, size, &opened, &opened_size) < 0);
}

static void check_table(const uint8_t *bytes, size_t size)
{
	static const struct seal_key zero;
	uint8_t *again, *file, *opened;
	size_t again_size, file_size, opened_size;
	struct secrets *secrets;

	if (secrets_parse(bytes, size, &secrets) < 0)
		return;
	require(secrets_format(secrets, &again, &again_size) == 0);
	require(again_size == size && memcmp(again, bytes, size) == 0);
	require(seal_close(&zero, again, again_size, &file, &file_size) == 0);
	require(seal_open(&zero, file, file_size, &opened, &opened_size) == 0);
	require(opened_size == size && memcmp(opened, bytes, size) == 0);
	for (size_t i = 0; i < secrets->count; i++)
		require(secrets_find(secrets, secrets->items[i].name) == &secrets->items[i]);
	sodium_free(opened);
	free(file);
	sodium_free(again);
	secrets_free(secrets);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	require(sodium_init() >= 0);
	check_key_file(bytes, size);
	check_sealed(bytes, size);
	check_table(bytes, size);
	return 0;
}
