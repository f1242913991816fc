/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/store/credential.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "os/clock.h"

_Static_assert(CREDENTIAL_SECRET_SIZE == crypto_auth_hmacsha256_KEYBYTES, "the key of the HMAC");

int credential_new_key(char out[CREDENTIAL_KEY_SIZE])
{
	uint8_t bytes[20];
	int r = random_bytes(bytes, sizeof bytes);

	if (r < 0)
		return r;
	memcpy(out, "e2b_", 4);
	sodium_bin2hex(out + 4, CREDENTIAL_KEY_SIZE - 4, bytes, sizeof bytes);
	sodium_memzero(bytes, sizeof bytes);
	return 0;
}

/* Two session ids hold 120 bits and more between them; a letter first, as a label of DNS may want it. */
int credential_new_id(char out[CREDENTIAL_ID_SIZE])
{
	char first[SESSION_ID_SIZE], second[SESSION_ID_SIZE];
	int r = random_session_id(first);

	if (r == 0)
		r = random_session_id(second);
	return r < 0 ? r : str_format(out, CREDENTIAL_ID_SIZE, "i%s%.7s", first, second);
}

void credential_hash(const char *key, struct hash *ret_hash)
{
	hash_bytes(ret_hash, key, strlen(key));
}

void credential_token(const uint8_t secret[CREDENTIAL_SECRET_SIZE], const char *purpose, const char *sandbox,
		      char out[CREDENTIAL_TOKEN_SIZE])
{
	crypto_auth_hmacsha256_state state;
	struct hash hash;

	crypto_auth_hmacsha256_init(&state, secret, CREDENTIAL_SECRET_SIZE);
	crypto_auth_hmacsha256_update(&state, (const uint8_t *)purpose, strlen(purpose) + 1);
	crypto_auth_hmacsha256_update(&state, (const uint8_t *)sandbox, strlen(sandbox));
	crypto_auth_hmacsha256_final(&state, hash.bytes);
	hash_to_hex(&hash, out);
	sodium_memzero(&state, sizeof state);
}

/* Hashes of one length are compared, so that neither a length nor a beginning is told. */
bool credential_is_equal(const char *a, const char *b)
{
	struct hash left, right;

	if (!a || !b)
		return false;
	hash_bytes(&left, a, strlen(a));
	hash_bytes(&right, b, strlen(b));
	return sodium_memcmp(left.bytes, right.bytes, HASH_SIZE) == 0;
}

static void add_text(struct hash_stream *stream, const char *text)
{
	hash_stream_add(stream, text, strlen(text));
}

void credential_sign_begin(struct credential_signing *ret_signing, const struct credential_url *url)
{
	struct hash_stream *begun = &ret_signing->begun;

	hash_stream_begin(begun);
	add_text(begun, url->path);
	add_text(begun, url->writes ? ":write:" : ":read:");
	add_text(begun, url->user);
	add_text(begun, ":");
	ret_signing->end[0] = 0;
	/* It always fits. */
	if (url->has_expiry && str_format(ret_signing->end, sizeof ret_signing->end, ":%llu",
					  (unsigned long long)url->expires_s) < 0)
		abort();
}

int credential_read_signature(const char *text, struct hash *ret_signature)
{
	size_t size;

	if (!str_has_prefix(text, "v1_") ||
	    sodium_base642bin(ret_signature->bytes, HASH_SIZE, text + 3, strlen(text + 3), NULL, &size, NULL,
			      sodium_base64_VARIANT_ORIGINAL_NO_PADDING) != 0)
		return -EINVAL;
	return size == HASH_SIZE ? 0 : -EINVAL;
}

bool credential_is_signed(const struct credential_signing *signing, const char *token, const struct hash *signature)
{
	struct hash_stream stream = signing->begun;
	struct hash hash;

	add_text(&stream, token);
	add_text(&stream, signing->end);
	hash_stream_end(&stream, &hash);
	return sodium_memcmp(hash.bytes, signature->bytes, HASH_SIZE) == 0;
}
