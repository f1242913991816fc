/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The two files of a vault as bytes (doc/format/vault.md): the key, in the clear or wrapped by a passphrase
 * (Argon2id), and the secrets, sealed with it (XChaCha20-Poly1305 over a padded table, the header bound in). Pure but
 * for randomness; run by atoll-secret alone. Whoever changes one bit of either file is noticed.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

enum {
	SEAL_ID_SIZE = 16,
	SEAL_KEY_SIZE = 32,
	SEAL_KEY_FILE_SIZE = 136,
	SEAL_FILE_MAX = (1 << 20) + (16 << 10),   /* of the sealed secrets */
	SEAL_PASSPHRASE_MAX = 1024,
};

/* What kind of key file it is; the value in the file. */
enum seal_kind {
	SEAL_PLAIN = 0,         /* the file's permissions are all that protects it */
	SEAL_PASSPHRASE = 1,
	SEAL_KIND_COUNT,
};

/* Keep it in memory from sodium_malloc(). */
struct seal_key {
	uint8_t id[SEAL_ID_SIZE];       /* random, not secret: says which key a file of secrets belongs to */
	uint8_t bytes[SEAL_KEY_SIZE];
};

/* A new key in locked memory, freed with sodium_free(). NULL when out of memory. */
struct seal_key *seal_key_new(void) MUST_USE;

/*
 * What is known of a key file without opening it. -EBADMSG: damaged, or none. -EPROTONOSUPPORT: of a later version.
 * The cost of the passphrase is bounded here, so that a damaged file cannot ask for hours or gigabytes.
 */
int seal_key_peek(const uint8_t *file, size_t size, enum seal_kind *ret_kind, uint8_t ret_id[SEAL_ID_SIZE]) MUST_USE;

/*
 * The key of a key file; passphrase is read only where the kind is SEAL_PASSPHRASE. -EACCES: not this passphrase (or
 * damaged: the two cannot be told apart); -EBADMSG, -EPROTONOSUPPORT as above; -ENOMEM (Argon2id needs 128 MiB).
 */
int seal_key_open(const uint8_t *file, size_t size, const char *passphrase, size_t passphrase_size,
		  struct seal_key *ret_key) MUST_USE;

/* The key file; passphrase NULL: SEAL_PLAIN. Of a plain one file is as secret as the key. -ENOMEM. */
int seal_key_format(const struct seal_key *key, const char *passphrase, size_t passphrase_size,
		    uint8_t file[SEAL_KEY_FILE_SIZE]) MUST_USE;

/* Seals bytes into a new file image, freed with free(). -EFBIG, -ENOMEM. */
int seal_close(const struct seal_key *key, const uint8_t *bytes, size_t size, uint8_t **ret_file,
	       size_t *ret_size) MUST_USE;

/*
 * The bytes that were sealed, in locked memory, freed with sodium_free(). -ENOKEY: sealed with another key. -EBADMSG:
 * damaged or altered. -EPROTONOSUPPORT, -ENOMEM.
 */
int seal_open(const struct seal_key *key, const uint8_t *file, size_t size, uint8_t **ret_bytes,
	      size_t *ret_size) MUST_USE;
