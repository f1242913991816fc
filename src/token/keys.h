/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The user's signing key, and the keys of others whose tokens are taken here: one directory, closed to everybody else.
 * Run by atoll-token, which may reach nothing but its directories once they are open.
 */

#include "base/err.h"
#include "token/format.h"

enum {
	TOKEN_TRUSTED_MAX = 256,
	TOKEN_NOTE_SIZE = 64,            /* what the user says of a key */
	TOKEN_KEY_TEXT_SIZE = 64,        /* "atoll1-key.…" */
};

struct token_trusted {
	uint8_t key[TOKEN_KEY_SIZE];
	char note[TOKEN_NOTE_SIZE];
};

struct token_keys {
	int dir_fd;                      /* FD_NONE: there is no directory yet, and no key */
	char path[512];                  /* for errors */
	bool has_key;
	uint8_t seed[TOKEN_KEY_SIZE], public[TOKEN_KEY_SIZE];
	struct token_trusted trusted[TOKEN_TRUSTED_MAX];
	size_t trusted_count;
};

/*
 * Opens an absolute directory that must be the caller's own and closed to others; make: makes it (0700) where it is
 * missing. The fd; FD_NONE with 0 is never returned; -ENOENT where it is missing and not to be made.
 */
int token_directory_open(const char *path, bool make, struct err *err) MUST_USE;

/* Takes dir_fd (which may be FD_NONE) and reads what there is. token_keys_done() in any case. */
int token_keys_load(struct token_keys *keys, int dir_fd, const char *path, struct err *err) MUST_USE;
void token_keys_done(struct token_keys *keys);

/* The user's own key is made where there is none yet; on the disk when it returns. */
int token_keys_need(struct token_keys *keys, struct err *err) MUST_USE;

/* Whether tokens of this issuer are taken: the user's own, or a trusted one. */
bool token_keys_trust(const struct token_keys *keys, const uint8_t key[TOKEN_KEY_SIZE]);

/* Adds or removes a trusted key. 1: nothing was to be done. */
int token_keys_add(struct token_keys *keys, const uint8_t key[TOKEN_KEY_SIZE], const char *note, struct err *err)
	MUST_USE;
int token_keys_remove(struct token_keys *keys, const uint8_t key[TOKEN_KEY_SIZE], struct err *err) MUST_USE;

/* "atoll1-key." and base64url: a public key for people. -EINVAL. */
void token_key_format(const uint8_t key[TOKEN_KEY_SIZE], char out[TOKEN_KEY_TEXT_SIZE]);
int token_key_parse(const char *text, uint8_t out[TOKEN_KEY_SIZE]) MUST_USE;
