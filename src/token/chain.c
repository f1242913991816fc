/* SPDX-License-Identifier: Apache-2.0 */
#include "token/chain.h"

#include <sodium.h>
#include <string.h>

_Static_assert((int)TOKEN_KEY_SIZE == (int)crypto_sign_PUBLICKEYBYTES, "Ed25519");
_Static_assert((int)TOKEN_KEY_SIZE == (int)crypto_sign_SEEDBYTES, "Ed25519");
_Static_assert((int)TOKEN_SIGNATURE_SIZE == (int)crypto_sign_BYTES, "Ed25519");

/*
 * What is signed is an id: a hash of the id before (of the first: the issuer's key), the payload and the next key. So a
 * signature holds for one block at one place of one chain. Each use of a hash or a key has its own first bytes.
 */

static const char id_domain[] = "atoll token id 1", block_domain[] = "atoll token block 1",
		  seal_domain[] = "atoll token seal 1";

enum { MESSAGE_SIZE = 32 + TOKEN_ID_SIZE };

struct key {
	uint8_t public[TOKEN_KEY_SIZE], secret[crypto_sign_SECRETKEYBYTES], seed[TOKEN_KEY_SIZE];
};

static void key_from_seed(struct key *key, const uint8_t seed[TOKEN_KEY_SIZE])
{
	memcpy(key->seed, seed, TOKEN_KEY_SIZE);
	crypto_sign_seed_keypair(key->public, key->secret, seed);
}

static void key_new(struct key *key)
{
	uint8_t seed[TOKEN_KEY_SIZE];

	randombytes_buf(seed, sizeof seed);
	key_from_seed(key, seed);
	sodium_memzero(seed, sizeof seed);
}

void token_id_to_text(const struct token_id *id, char out[TOKEN_ID_TEXT_SIZE])
{
	sodium_bin2hex(out, TOKEN_ID_TEXT_SIZE, id->bytes, (TOKEN_ID_TEXT_SIZE - 1) / 2);
}

/* before: TOKEN_ID_SIZE bytes. */
static void make_id(const uint8_t *before, const struct token_link *link, struct token_id *ret_id)
{
	crypto_generichash_state state;

	crypto_generichash_init(&state, NULL, 0, TOKEN_ID_SIZE);
	crypto_generichash_update(&state, (const uint8_t *)id_domain, sizeof id_domain);
	crypto_generichash_update(&state, before, TOKEN_ID_SIZE);
	crypto_generichash_update(&state, link->next, TOKEN_KEY_SIZE);
	/* Last, as the only part whose size is not fixed. */
	crypto_generichash_update(&state, link->payload, link->payload_size);
	crypto_generichash_final(&state, ret_id->bytes, TOKEN_ID_SIZE);
}

void token_ids(const struct token *token, struct token_id ids[TOKEN_BLOCKS_MAX])
{
	for (size_t i = 0; i < token->count; i++)
		make_id(i ? ids[i - 1].bytes : token->issuer, &token->links[i], &ids[i]);
}

static void make_message(uint8_t out[MESSAGE_SIZE], const char *domain, const struct token_id *id)
{
	memset(out, 0, MESSAGE_SIZE);
	memcpy(out, domain, strlen(domain));
	memcpy(out + MESSAGE_SIZE - TOKEN_ID_SIZE, id->bytes, TOKEN_ID_SIZE);
}

static bool is_signed(const uint8_t *signature, const char *domain, const struct token_id *id, const uint8_t *key)
{
	uint8_t message[MESSAGE_SIZE];

	make_message(message, domain, id);
	return crypto_sign_verify_detached(signature, message, sizeof message, key) == 0;
}

static void sign(uint8_t signature[TOKEN_SIGNATURE_SIZE], const char *domain, const struct token_id *id,
		 const struct key *key)
{
	uint8_t message[MESSAGE_SIZE];

	make_message(message, domain, id);
	crypto_sign_detached(signature, NULL, message, sizeof message, key->secret);
}

bool token_is_genuine(const struct token *token)
{
	struct token_id ids[TOKEN_BLOCKS_MAX];
	const uint8_t *key = token->issuer, *last = token->links[token->count - 1].next;
	struct key held;
	bool is_held;

	token_ids(token, ids);
	for (size_t i = 0; i < token->count; i++) {
		if (!is_signed(token->links[i].signature, block_domain, &ids[i], key))
			return false;
		key = token->links[i].next;
	}
	if (token->is_sealed)
		return is_signed(token->proof, seal_domain, &ids[token->count - 1], last);
	key_from_seed(&held, token->proof);
	is_held = memcmp(held.public, last, TOKEN_KEY_SIZE) == 0;
	sodium_memzero(&held, sizeof held);
	return is_held;
}

/* Adds a block behind links[0 … count), signed with signer, and assembles; before: the id it goes on from. */
static int add_block(struct token_parts *parts, struct token_link *links, struct token_block *block,
		     const struct key *signer, const uint8_t *before, struct token *ret_token)
{
	uint8_t signature[TOKEN_SIGNATURE_SIZE];
	cleanup_buf struct buf payload;
	struct token_id id;
	struct key next;
	int r;

	randombytes_buf(block->serial, sizeof block->serial);
	buf_init(&payload, TOKEN_PAYLOAD_MAX);
	r = token_block_format(block, &payload);
	if (r < 0)
		return r;
	key_new(&next);
	links[parts->count] = (struct token_link){ .payload = payload.bytes, .payload_size = payload.size,
						   .next = next.public, .signature = signature };
	make_id(before, &links[parts->count++], &id);
	sign(signature, block_domain, &id, signer);
	parts->links = links;
	parts->proof = next.seed;
	r = token_assemble(parts, ret_token);
	sodium_memzero(&next, sizeof next);
	return r == -EBADMSG ? -EINVAL : r;
}

int token_mint(const uint8_t seed[TOKEN_KEY_SIZE], struct token_block *block, struct token *ret_token)
{
	struct token_link links[TOKEN_BLOCKS_MAX];
	struct token_parts parts = { 0 };
	struct key issuer;
	int r;

	key_from_seed(&issuer, seed);
	parts.issuer = issuer.public;
	r = add_block(&parts, links, block, &issuer, issuer.public, ret_token);
	sodium_memzero(&issuer, sizeof issuer);
	return r;
}

int token_append(const struct token *token, struct token_block *block, struct token *ret_token)
{
	struct token_parts parts = { .issuer = token->issuer, .count = token->count };
	struct token_link links[TOKEN_BLOCKS_MAX];
	struct token_id ids[TOKEN_BLOCKS_MAX];
	struct key holder;
	int r;

	if (token->is_sealed)
		return -EPERM;
	if (token->count == TOKEN_BLOCKS_MAX)
		return -ENOSPC;
	memcpy(links, token->links, token->count * sizeof *links);
	token_ids(token, ids);
	key_from_seed(&holder, token->proof);
	r = add_block(&parts, links, block, &holder, ids[token->count - 1].bytes, ret_token);
	sodium_memzero(&holder, sizeof holder);
	return r;
}

int token_seal(const struct token *token, struct token *ret_token)
{
	uint8_t signature[TOKEN_SIGNATURE_SIZE];
	struct token_parts parts = { .issuer = token->issuer, .proof = signature, .links = token->links,
				     .count = token->count, .is_sealed = true };
	struct token_id ids[TOKEN_BLOCKS_MAX];
	struct key holder;

	if (token->is_sealed)
		return -EPERM;
	token_ids(token, ids);
	key_from_seed(&holder, token->proof);
	sign(signature, seal_domain, &ids[token->count - 1], &holder);
	sodium_memzero(&holder, sizeof holder);
	return token_assemble(&parts, ret_token);
}
