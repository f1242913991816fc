/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include <sodium/crypto_hash_sha256.h>
#include <string.h>

#ifndef __GLIBC__
/*
 * Debian's libsodium.a is built against glibc, and the object behind its SHA-256 that zeroes memory pulls in every
 * cipher of the library: a quarter of a megabyte of text, and symbols that musl does not have, for one memset that
 * must not be optimised away. It must stand in this object, which is linked before libsodium looks for its own.
 */
void sodium_memzero(void *const bytes, const size_t size);

void sodium_memzero(void *const bytes, const size_t size)
{
	explicit_bzero(bytes, size);
}
#endif

void hash_pieces(struct hash *ret_hash, const struct hash_piece *pieces, size_t count)
{
	crypto_hash_sha256_state state;

	crypto_hash_sha256_init(&state);
	for (size_t i = 0; i < count; i++)
		crypto_hash_sha256_update(&state, pieces[i].bytes, pieces[i].size);
	crypto_hash_sha256_final(&state, ret_hash->bytes);
}

void hash_bytes(struct hash *ret_hash, const void *bytes, size_t size)
{
	hash_pieces(ret_hash, &(struct hash_piece){ bytes, size }, 1);
}

void hash_to_hex(const struct hash *hash, char out[HASH_HEX_SIZE])
{
	for (int i = 0; i < HASH_SIZE; i++) {
		out[2 * i] = "0123456789abcdef"[hash->bytes[i] >> 4];
		out[2 * i + 1] = "0123456789abcdef"[hash->bytes[i] & 15];
	}
	out[2 * HASH_SIZE] = 0;
}
