/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who signed a token: a chain of blocks as in Biscuit (doc.biscuitsec.org). Each block names the key that the next one
 * is signed with, and the holder has the last private key; so whoever holds a token can add a block, which can only
 * narrow it (check.h), and nobody can take one away or change one. A sealed token has a signature in the place
 * of that key. Run by atoll-token.
 */

#include "token/format.h"

enum { TOKEN_ID_SIZE = 32 };

/* Of a block and all before it: what revocation and counting go by. Does not depend on signatures. */
struct token_id {
	uint8_t bytes[TOKEN_ID_SIZE];
};

enum { TOKEN_ID_TEXT_SIZE = 2 * 16 + 1 }; /* half of it, in hex, names a token well enough */
void token_id_to_text(const struct token_id *id, char out[TOKEN_ID_TEXT_SIZE]);

/* The id of each block, token->count of them: a hash over it and the id before, by which it is revoked and counted. */
void token_ids(const struct token *token, struct token_id ids[TOKEN_BLOCKS_MAX]);

/* Whether every block is signed with the key that the one before names, the first with the issuer's, and the proof
 * belongs to the last. Says nothing of who the issuer is. */
bool token_is_genuine(const struct token *token);

/* A token of one block, signed with the issuer's seed. -EINVAL: the block is not valid; -ENOMEM. */
int token_mint(const uint8_t seed[TOKEN_KEY_SIZE], struct token_block *block, struct token *ret_token) MUST_USE;

/*
 * The token with one more block. -EPERM: it is sealed; -ENOSPC: it has too many blocks; as above. That the block
 * narrows is the caller's to check (token_narrows()): one that does not makes a token that nobody takes.
 */
int token_append(const struct token *token, struct token_block *block, struct token *ret_token) MUST_USE;

/* The token without the last private key. -EPERM: it is sealed already. */
int token_seal(const struct token *token, struct token *ret_token) MUST_USE;
