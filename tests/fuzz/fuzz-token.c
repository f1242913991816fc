/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A token from arbitrary bytes, and one block of it, which is what a holder can sign. What is accepted gives the same
 * bytes again, is described, judged and granted without a fault, and is genuine only if it was signed.
 */

#include <sodium.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "token/chain.h"
#include "token/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check_block(const uint8_t *bytes, size_t size)
{
	struct token_block block;
	cleanup_buf struct buf out = { 0 };

	if (token_block_parse(bytes, size, &block) < 0)
		return;
	buf_init(&out, TOKEN_PAYLOAD_MAX);
	require(token_block_format(&block, &out) == 0 && out.size == size && memcmp(out.bytes, bytes, size) == 0);
	for (size_t i = 0; i < block.right_count; i++) {
		struct grant_terms terms = token_right_terms(&block.rights[i]);

		require(token_right_is_valid(&block.rights[i]) && terms.subject);
		require(token_right_contains(&block.rights[i], &block.rights[i]));
		token_right_format(&block.rights[i], &out);
	}
	free(block.rights);
}

static void check_token(const struct token *token)
{
	struct token_parts parts = { token->issuer, token->proof, token->links, token->count, token->is_sealed };
	struct token_place place = { 1000, "/project", { "agent", NULL } };
	cleanup_token struct token again = { 0 };
	struct token_id ids[TOKEN_BLOCKS_MAX];
	cleanup_buf struct buf text;

	require(token_assemble(&parts, &again) == 0 && again.size == token->size);
	require(memcmp(again.bytes, token->bytes, token->size) == 0);
	token_ids(token, ids);
	(void)token_is_genuine(token);
	(void)token_check(token, &place);
	(void)token_allows(token, &(struct grant_terms){ .kind = ACTION_FILE_READ, .subject = "/data/x" });
	buf_init(&text, TOKEN_TEXT_MAX);
	require(token_format_text(token, &text) == 0);
	token_done(&again);
	require(token_parse_text(&again, (char *)text.bytes, text.size) == 0 && again.size == token->size);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	cleanup_token struct token token = { 0 };

	require(sodium_init() >= 0);
	check_block(bytes, size);
	if (token_parse(&token, bytes, size) == 0)
		check_token(&token);
	token_done(&token);
	if (token_parse_text(&token, (const char *)bytes, size) == 0)
		check_token(&token);
	return 0;
}
