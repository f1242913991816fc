/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What clients of the service prove who they are with: keys of the API, a sandbox's tokens, and signed URLs. Pure but
 * for randomness. A key is 160 random bits, of which the hash alone is kept; a token is made of the server's secret and
 * the sandbox's id whenever it is needed, and is kept nowhere. Runs in atolld.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/hash.h"

enum {
	CREDENTIAL_SECRET_SIZE = 32,
	CREDENTIAL_KEY_SIZE = 4 + 40 + 1,      /* "e2b_", 40 hex digits, NUL: older clients insist on the form */
	CREDENTIAL_KEY_SHOWN = 4 + 4,          /* so much of a key is shown in lists */
	CREDENTIAL_TOKEN_SIZE = 64 + 1,
	CREDENTIAL_ID_SIZE = 20 + 1,           /* a sandbox's id: [a-z0-9], a letter first */
};

/* A new key, in the form of the protocol. 0 or -errno. */
int credential_new_key(char out[CREDENTIAL_KEY_SIZE]) MUST_USE;

/* A new id of a sandbox. 0 or -errno. */
int credential_new_id(char out[CREDENTIAL_ID_SIZE]) MUST_USE;

/* What is kept of a key: SHA-256. With 160 random bits in it a slow hash would add nothing. */
void credential_hash(const char *key, struct hash *ret_hash);

/* The token of a sandbox for a purpose ("envd", "traffic"): HMAC-SHA-256 in hex. */
void credential_token(const uint8_t secret[CREDENTIAL_SECRET_SIZE], const char *purpose, const char *sandbox,
		      char out[CREDENTIAL_TOKEN_SIZE]);

/* Whether two texts are equal, in a time that tells nothing of where they differ; NULL equals nothing. */
bool credential_is_equal(const char *a, const char *b);

/* What a URL is signed for. */
struct credential_url {
	const char *path, *user;   /* as they stand in the URL; "" where they do not */
	bool writes;
	bool has_expiry;
	uint64_t expires_s;        /* since 1970 */
};

/* The part of a signature that is the same for each token; nothing in it has to be freed. */
struct credential_signing {
	struct hash_stream begun;
	char end[24];              /* behind the token */
};

/* The hash in a signature: "v1_" and its base64 without padding. 0, or -EINVAL: it has another form. */
int credential_read_signature(const char *text, struct hash *ret_signature) MUST_USE;

/*
 * Whether a signature is SHA-256 of PATH:read|write:USER:TOKEN[:EXPIRES], in two steps: a URL that names no sandbox is
 * tried with many tokens, and a long path shall not cost each of them. The comparison tells nothing by its time.
 */
void credential_sign_begin(struct credential_signing *ret_signing, const struct credential_url *url);
bool credential_is_signed(const struct credential_signing *signing, const char *token, const struct hash *signature);
