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

_Static_assert(sizeof(struct hash_stream) >= sizeof(crypto_hash_sha256_state) &&
	       _Alignof(struct hash_stream) >= _Alignof(crypto_hash_sha256_state), "the state fits");

static crypto_hash_sha256_state *state_of(struct hash_stream *stream)
{
	return (crypto_hash_sha256_state *)stream->state;
}

void hash_stream_begin(struct hash_stream *stream)
{
	crypto_hash_sha256_init(state_of(stream));
}

void hash_stream_add(struct hash_stream *stream, const void *bytes, size_t size)
{
	crypto_hash_sha256_update(state_of(stream), bytes, size);
}

void hash_stream_end(struct hash_stream *stream, struct hash *ret_hash)
{
	crypto_hash_sha256_final(state_of(stream), ret_hash->bytes);
}

void hash_pieces(struct hash *ret_hash, const struct hash_piece *pieces, size_t count)
{
	struct hash_stream stream;

	hash_stream_begin(&stream);
	for (size_t i = 0; i < count; i++)
		hash_stream_add(&stream, pieces[i].bytes, pieces[i].size);
	hash_stream_end(&stream, ret_hash);
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
