/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * SHA-256 (FIPS 180-4) through libsodium, and lower-case hex. Pure; needs no sodium_init().
 * For integrity only: nothing here is keyed, and nothing compares secrets.
 */

#include <stddef.h>
#include <stdint.h>

enum { HASH_SIZE = 32, HASH_HEX_SIZE = 65 };

struct hash {
	uint8_t bytes[HASH_SIZE];
};

struct hash_piece {
	const void *bytes;
	size_t size;
};

/* Of bytes that come one after the other. */
struct hash_stream {
	uint64_t state[13];   /* libsodium's, whose headers bring names of their own */
};

/* SHA-256 (FIPS 180-4), begun, fed any number of times, and ended once; a stream holds nothing that has to be freed. */
void hash_stream_begin(struct hash_stream *stream);
void hash_stream_add(struct hash_stream *stream, const void *bytes, size_t size);
void hash_stream_end(struct hash_stream *stream, struct hash *ret_hash);

/* SHA-256 of all pieces as if they were one text: their borders are no part of it. */
void hash_pieces(struct hash *ret_hash, const struct hash_piece *pieces, size_t count);
void hash_bytes(struct hash *ret_hash, const void *bytes, size_t size);

/* 64 lower-case digits and a NUL. */
void hash_to_hex(const struct hash *hash, char out[HASH_HEX_SIZE]);
