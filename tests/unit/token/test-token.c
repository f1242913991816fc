/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tokens: what was minted is taken, what was narrowed too, and nothing else: not with any byte changed, nothing cut
 * off or added, no block moved, left out, doubled or brought from elsewhere, nothing wider. Each attack begins with a
 * token that holds.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sodium.h>

#include "base/str.h"
#include "token/chain.h"
#include "token/check.h"

enum { NOW_S = 1000000, HOUR_S = 3600 };

static const uint8_t seed[TOKEN_KEY_SIZE] = "who issues it", other_seed[TOKEN_KEY_SIZE] = "somebody else";

static struct token_block block_of(struct token_right *rights, size_t count)
{
	struct token_block block = { .rights = rights, .right_count = count };

	for (int i = 0; i < TOKEN_LIMIT_COUNT; i++)
		block.limits[i] = UINT64_MAX;
	return block;
}

static void mint(struct token *token)
{
	struct token_right rights[] = {
		{ .kind = TOKEN_FILE_WRITE, .is_below = true, .subject = "/data" },
		{ .kind = TOKEN_HTTP_REQUEST, .subject = "*.example.org", .method = "GET", .path = "/v1/**" },
		{ .kind = TOKEN_EXEC, .subject = "/usr/bin/git", .words = { "git", "push" }, .word_count = 2 },
	};
	struct token_block block = block_of(rights, ARRAY_SIZE(rights));

	block.expires_s = NOW_S + HOUR_S;
	block.not_before_s = NOW_S;
	block.uses = 3;
	block.project = "/home/u/shop";
	block.agent = "claude";
	block.limits[TOKEN_MEMORY] = 1 << 30;
	assert_int_equal(token_mint(seed, &block, token), 0);
}

/* One that was narrowed twice. */
static void make(struct token *token)
{
	struct token_right right = { .kind = TOKEN_FILE_READ, .subject = "/data/a" };
	struct token_block first = block_of(&right, 1), second = block_of(NULL, 0);
	cleanup_token struct token minted = { 0 }, narrowed = { 0 };

	mint(&minted);
	assert_int_equal(token_append(&minted, &first, &narrowed), 0);
	second.expires_s = NOW_S + 60;
	second.limits[TOKEN_MEMORY] = 1 << 20;
	assert_int_equal(token_append(&narrowed, &second, token), 0);
}

static bool is_ours(const struct token *token)
{
	uint8_t public[TOKEN_KEY_SIZE], secret[crypto_sign_SECRETKEYBYTES];

	crypto_sign_seed_keypair(public, secret, seed);
	return memcmp(token->issuer, public, sizeof public) == 0;
}

static bool holds(const struct token *token)
{
	struct token_place place = { NOW_S, "/home/u/shop", { "claude", NULL } };

	return is_ours(token) && token_is_genuine(token) && token_check(token, &place) == TOKEN_FINE;
}

static bool bytes_hold(const uint8_t *bytes, size_t size)
{
	cleanup_token struct token token = { 0 };

	return token_parse(&token, bytes, size) == 0 && holds(&token);
}

/* From a byte on; each has its turn with another bit. */
static void a_token_holds_until_it_is_changed_anywhere(const struct token *token, size_t first)
{
	uint8_t bytes[TOKEN_BYTES_MAX];

	memcpy(bytes, token->bytes, token->size);
	assert_true(bytes_hold(bytes, token->size));
	for (size_t i = first; i < token->size; i++) {
		uint8_t bit = (uint8_t)(1 << i % 8);

		bytes[i] ^= bit;
		if (bytes_hold(bytes, token->size))
			fail_msg("byte %zu, bit %u", i, bit);
		bytes[i] ^= bit;
	}
	for (size_t size = 0; size < token->size; size++)
		assert_false(bytes_hold(bytes, size));
	bytes[token->size] = 0;
	assert_false(bytes_hold(bytes, token->size + 1));
	assert_true(bytes_hold(bytes, token->size));
}

static void no_byte_can_be_changed(void **state)
{
	cleanup_token struct token token = { 0 }, sealed = { 0 };

	make(&token);
	a_token_holds_until_it_is_changed_anywhere(&token, 0);
	assert_int_equal(token_seal(&token, &sealed), 0);
	/* The blocks are the same ones. */
	a_token_holds_until_it_is_changed_anywhere(&sealed, sealed.size - TOKEN_SIGNATURE_SIZE - 8);
}

static void no_character_of_its_text_can_be_changed(void **state)
{
	static const char alphabet[] = "A=";
	cleanup_token struct token token = { 0 };
	cleanup_buf struct buf text;
	char *bytes;

	make(&token);
	buf_init(&text, TOKEN_TEXT_MAX);
	assert_int_equal(token_format_text(&token, &text), 0);
	assert_true(token_is_text(buf_text(&text)));
	bytes = (char *)text.bytes;
	for (size_t i = 0; i < text.size; i++)
		for (size_t k = 0; k < sizeof alphabet - 1; k++) {
			cleanup_token struct token again = { 0 };
			char was = bytes[i];
			bool is_edge = (i == 0 || i == text.size - 1) && strchr(" \n", alphabet[k]);

			bytes[i] = alphabet[k];
			if (was != alphabet[k] && !is_edge && token_parse_text(&again, bytes, text.size) == 0 &&
			    holds(&again))
				fail_msg("character %zu: %c", i, alphabet[k]);
			bytes[i] = was;
		}
	buf_put_text(&text, " \r\n");
	{
		cleanup_token struct token again = { 0 };

		assert_int_equal(token_parse_text(&again, (char *)text.bytes, text.size), 0);
		assert_true(holds(&again));
	}
}

static int assemble(const struct token *token, const struct token_link *links, size_t count, const uint8_t *proof,
		    bool is_sealed)
{
	struct token_parts parts = { token->issuer, proof, links, count, is_sealed };
	cleanup_token struct token made = { 0 };

	return token_assemble(&parts, &made) == 0 && holds(&made);
}

static void no_block_can_be_moved_left_out_or_brought_from_elsewhere(void **state)
{
	cleanup_token struct token token = { 0 }, other = { 0 };
	struct token_link links[TOKEN_BLOCKS_MAX];

	make(&token);
	make(&other); /* the same, with other keys and serials */
	memcpy(links, token.links, sizeof links);
	assert_true(assemble(&token, links, 3, token.proof, false));
	/* The last block away: its holder has not got the key that the one before names. */
	assert_false(assemble(&token, links, 2, token.proof, false));
	assert_false(assemble(&token, links, 1, token.proof, false));
	links[1] = token.links[2];
	assert_false(assemble(&token, links, 2, token.proof, false));
	links[2] = token.links[1];
	assert_false(assemble(&token, links, 3, token.proof, false));
	links[1] = token.links[1], links[2] = token.links[2], links[3] = token.links[2];
	assert_false(assemble(&token, links, 4, token.proof, false));
	for (size_t i = 0; i < 3; i++) {
		memcpy(links, token.links, sizeof links);
		links[i] = other.links[i];
		assert_false(assemble(&token, links, 3, token.proof, false));
		assert_false(assemble(&token, links, 3, other.proof, false));
	}
	assert_true(assemble(&other, other.links, 3, other.proof, false));
	assert_false(assemble(&other, other.links, 3, token.proof, false));
}

/* With the holder's key anybody can sign what they want: it must not be taken. */
static enum token_fault fault_of(const struct token *token, struct token_block *block)
{
	struct token_place place = { NOW_S, "/home/u/shop", { "claude", NULL } };
	cleanup_token struct token made = { 0 };

	assert_int_equal(token_append(token, block, &made), 0);
	assert_true(token_is_genuine(&made));
	return token_check(&made, &place);
}

static void a_block_that_claims_more_is_refused(void **state)
{
	static struct token_right wider[] = {
		{ .kind = TOKEN_FILE_READ, .is_below = true, .subject = "/" },
		{ .kind = TOKEN_FILE_WRITE, .subject = "/data2" },
		{ .kind = TOKEN_HTTP_REQUEST, .subject = "*.example.org", .method = "GET" },
		{ .kind = TOKEN_HTTP_REQUEST, .subject = "a.example.org", .method = "POST", .path = "/v1/x" },
		{ .kind = TOKEN_HTTP_REQUEST, .subject = "example.org", .method = "GET", .path = "/v1/x" },
		{ .kind = TOKEN_EXEC, .subject = "/usr/bin/git" },
		{ .kind = TOKEN_EXEC, .subject = "/usr/bin/git", .words = { "git", "push", "-f" }, .word_count = 3 },
		{ .kind = TOKEN_NET_CONNECT, .subject = "a.example.org" },
	};
	static struct token_right narrower[] = {
		{ .kind = TOKEN_FILE_READ, .is_below = true, .subject = "/data" },
		{ .kind = TOKEN_FILE_WRITE, .subject = "/data/x" },
		{ .kind = TOKEN_HTTP_REQUEST, .subject = "*.b.example.org", .method = "GET", .path = "/v1/x/**" },
		{ .kind = TOKEN_EXEC, .subject = "/usr/bin/git", .words = { "git", "push" }, .word_count = 2 },
	};
	cleanup_token struct token token = { 0 };
	struct token_block block;

	mint(&token);
	for (size_t i = 0; i < ARRAY_SIZE(narrower); i++) {
		block = block_of(&narrower[i], 1);
		assert_int_equal(fault_of(&token, &block), TOKEN_FINE);
	}
	for (size_t i = 0; i < ARRAY_SIZE(wider); i++) {
		block = block_of(&wider[i], 1);
		assert_int_equal(fault_of(&token, &block), TOKEN_WIDENED);
	}
	block = block_of(NULL, 0), block.expires_s = NOW_S + HOUR_S + 1;
	assert_int_equal(fault_of(&token, &block), TOKEN_WIDENED);
	block = block_of(NULL, 0), block.not_before_s = NOW_S - 1;
	assert_int_equal(fault_of(&token, &block), TOKEN_WIDENED);
	block = block_of(NULL, 0), block.uses = 4;
	assert_int_equal(fault_of(&token, &block), TOKEN_WIDENED);
	block = block_of(NULL, 0), block.limits[TOKEN_MEMORY] = (1u << 30) + 1;
	assert_int_equal(fault_of(&token, &block), TOKEN_WIDENED);
	block = block_of(NULL, 0), block.project = "/home/u/other";
	assert_int_equal(fault_of(&token, &block), TOKEN_WIDENED);
	block = block_of(NULL, 0), block.agent = "codex";
	assert_int_equal(fault_of(&token, &block), TOKEN_WIDENED);
	block = block_of(NULL, 0), block.limits[TOKEN_DISK] = 5, block.uses = 1, block.expires_s = NOW_S + 1;
	assert_int_equal(fault_of(&token, &block), TOKEN_FINE);
}

static void it_holds_at_its_time_and_place(void **state)
{
	cleanup_token struct token token = { 0 };
	struct token_place place = { NOW_S, "/home/u/shop", { "medium", "claude" } };

	mint(&token);
	assert_int_equal(token_check(&token, &place), TOKEN_FINE);
	place.now_s = NOW_S + HOUR_S - 1;
	assert_int_equal(token_check(&token, &place), TOKEN_FINE);
	place.now_s = NOW_S + HOUR_S; /* no grace for clocks here */
	assert_int_equal(token_check(&token, &place), TOKEN_EXPIRED);
	place.now_s = NOW_S - TOKEN_SKEW_S;
	assert_int_equal(token_check(&token, &place), TOKEN_FINE);
	place.now_s = NOW_S - TOKEN_SKEW_S - 1;
	assert_int_equal(token_check(&token, &place), TOKEN_NOT_YET);
	place = (struct token_place){ NOW_S, "/home/u/shop2", { "claude", NULL } };
	assert_int_equal(token_check(&token, &place), TOKEN_ELSEWHERE);
	place = (struct token_place){ NOW_S, "/home/u/shop", { "medium", NULL } };
	assert_int_equal(token_check(&token, &place), TOKEN_ELSEWHERE);
	place = (struct token_place){ NOW_S, NULL, { NULL } }; /* to look at it */
	assert_int_equal(token_check(&token, &place), TOKEN_FINE);
}

static void another_issuer_is_another_issuer(void **state)
{
	struct token_right right = { .kind = TOKEN_FILE_READ, .subject = "/data/a" };
	struct token_block block = block_of(&right, 1);
	cleanup_token struct token ours = { 0 }, forged = { 0 };
	struct token_parts parts;
	cleanup_token struct token made = { 0 };

	block.expires_s = NOW_S + HOUR_S;
	mint(&ours);
	assert_int_equal(token_mint(other_seed, &block, &forged), 0);
	assert_true(token_is_genuine(&forged) && !is_ours(&forged));
	/* With our name on it. */
	parts = (struct token_parts){ ours.issuer, forged.proof, forged.links, 1, false };
	assert_int_equal(token_assemble(&parts, &made), 0);
	assert_true(is_ours(&made) && !token_is_genuine(&made));
}

static void it_cannot_be_narrowed_for_ever_or_once_sealed(void **state)
{
	struct token_block block = block_of(NULL, 0);
	cleanup_token struct token token = { 0 }, sealed = { 0 };

	block.limits[TOKEN_DISK] = 7;
	mint(&token);
	for (int i = 1; i < TOKEN_BLOCKS_MAX; i++) {
		struct token more = { 0 };

		assert_int_equal(token_append(&token, &block, &more), 0);
		token_done(&token);
		token = more;
	}
	assert_true(holds(&token));
	assert_int_equal(token_append(&token, &block, &sealed), -ENOSPC);
	assert_int_equal(token_seal(&token, &sealed), 0);
	assert_true(holds(&sealed));
	{
		cleanup_token struct token none = { 0 };

		assert_int_equal(token_append(&sealed, &block, &none), -EPERM);
		assert_int_equal(token_seal(&sealed, &none), -EPERM);
	}
}

static void what_is_not_valid_is_not_written(void **state)
{
	static char long_text[TOKEN_STRING_MAX + 8] = "/";
	static struct token_right bad[] = {
		{ .kind = TOKEN_FILE_READ, .subject = "relative" },
		{ .kind = TOKEN_FILE_READ, .subject = "/a/../b" },
		{ .kind = TOKEN_FILE_READ, .subject = "/a/" },
		{ .kind = TOKEN_FILE_READ, .subject = "" },
		{ .kind = TOKEN_NET_CONNECT, .subject = "UPPER.org" },
		{ .kind = TOKEN_NET_CONNECT, .subject = "*" },
		{ .kind = TOKEN_NET_CONNECT, .subject = "a*.org" },
		{ .kind = TOKEN_NET_CONNECT, .subject = "a..org" },
		{ .kind = TOKEN_HTTP_REQUEST, .subject = "a.org", .path = "/a*" },
		{ .kind = TOKEN_HTTP_REQUEST, .subject = "a.org", .path = "/[a]/**" },
		{ .kind = TOKEN_HTTP_REQUEST, .subject = "a.org", .method = "get" },
		{ .kind = TOKEN_FILE_READ, .subject = "/a", .port = 3 },
		{ .kind = TOKEN_FILE_READ, .subject = "/a", .path = "/b" },
		{ .kind = TOKEN_KIND_END, .subject = "/a" },
		{ .subject = "/a" },
		{ .kind = TOKEN_FILE_READ, .subject = long_text },
	};
	cleanup_token struct token token = { 0 };

	memset(long_text + 1, 'x', sizeof long_text - 2);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct token_block block = block_of(&bad[i], 1);

		block.expires_s = NOW_S;
		if (token_mint(seed, &block, &token) != -EINVAL)
			fail_msg("right %zu", i);
	}
	{
		struct token_block block = block_of(NULL, 0);

		assert_int_equal(token_mint(seed, &block, &token), -EINVAL); /* without an end */
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_byte_can_be_changed),
		cmocka_unit_test(no_character_of_its_text_can_be_changed),
		cmocka_unit_test(no_block_can_be_moved_left_out_or_brought_from_elsewhere),
		cmocka_unit_test(a_block_that_claims_more_is_refused),
		cmocka_unit_test(it_holds_at_its_time_and_place),
		cmocka_unit_test(another_issuer_is_another_issuer),
		cmocka_unit_test(it_cannot_be_narrowed_for_ever_or_once_sealed),
		cmocka_unit_test(what_is_not_valid_is_not_written),
	};

	return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
