/* SPDX-License-Identifier: Apache-2.0 */
#include "notify/sign.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

static void sign(const struct sign_key *key, const char *head, const void *body, size_t size, char out[SIGN_SIZE])
{
	crypto_auth_hmacsha256_state state;
	unsigned char mac[crypto_auth_hmacsha256_BYTES];

	crypto_auth_hmacsha256_init(&state, key->bytes, key->size);
	crypto_auth_hmacsha256_update(&state, (const unsigned char *)head, strlen(head));
	crypto_auth_hmacsha256_update(&state, body, size);
	crypto_auth_hmacsha256_final(&state, mac);
	sodium_bin2hex(out, SIGN_SIZE, mac, sizeof mac);
	sodium_memzero(&state, sizeof state);
}

void sign_request(const struct sign_key *key, uint64_t time_s, const void *body, size_t size, char out[SIGN_SIZE])
{
	char head[32];

	snprintf(head, sizeof head, "%llu.", (unsigned long long)time_s);
	sign(key, head, body, size, out);
}

void sign_answer(const struct sign_key *key, const char request[SIGN_SIZE], const void *body, size_t size,
		 char out[SIGN_SIZE])
{
	char head[SIGN_SIZE + 8];

	snprintf(head, sizeof head, "%s.", request);
	sign(key, head, body, size, out);
}

bool sign_is_same(const char a[SIGN_SIZE], const char b[SIGN_SIZE])
{
	return sodium_memcmp(a, b, SIGN_SIZE - 1) == 0;
}
