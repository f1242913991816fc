/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include <sodium/crypto_hash_sha256.h>

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
