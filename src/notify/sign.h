/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Signatures of what goes to a webhook and of what it answers (doc/format/notify.md): HMAC-SHA-256 (RFC 2104) with a
 * key that both have, in lower-case hexadecimal. An answer's covers the signature of what it answers, so that none can
 * be used again. Pure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SIGN_SIZE = 65, SIGN_KEY_MIN = 16, SIGN_KEY_MAX = 4096 };

struct sign_key {
	uint8_t bytes[SIGN_KEY_MAX];
	size_t size;             /* 0: there is none */
};

/*
 * HMAC-SHA256 in hex of "TIME.BODY", TIME in seconds since the epoch; of an answer "SIGNATURE.BODY" with the signature
 * of its request, so that it answers no other. A key of size 0 signs too, and proves nothing: the caller asks first.
 */
void sign_request(const struct sign_key *key, uint64_t time_s, const void *body, size_t size, char out[SIGN_SIZE]);
void sign_answer(const struct sign_key *key, const char request[SIGN_SIZE], const void *body, size_t size,
		 char out[SIGN_SIZE]);

/* In a time that does not tell where they differ. */
bool sign_is_same(const char a[SIGN_SIZE], const char b[SIGN_SIZE]);
