/* SPDX-License-Identifier: Apache-2.0 */
#include "token/check.h"

#include <string.h>

#include "base/str.h"

const char *const token_fault_names[TOKEN_FAULT_COUNT] = {
	[TOKEN_FINE] = "fine", [TOKEN_MALFORMED] = "malformed", [TOKEN_FORGED] = "forged",
	[TOKEN_UNTRUSTED] = "untrusted", [TOKEN_WIDENED] = "widened", [TOKEN_EXPIRED] = "expired",
	[TOKEN_NOT_YET] = "not-yet-valid", [TOKEN_ELSEWHERE] = "elsewhere", [TOKEN_REVOKED] = "revoked",
	[TOKEN_USED_UP] = "used-up",
};

const char *const token_fault_texts[TOKEN_FAULT_COUNT] = {
	[TOKEN_FINE] = "it holds",
	[TOKEN_MALFORMED] = "it is no token, or a part of one",
	[TOKEN_FORGED] = "a signature in it is not right",
	[TOKEN_UNTRUSTED] = "its issuer is not one that you trust",
	[TOKEN_WIDENED] = "a block of it claims more than the one before",
	[TOKEN_EXPIRED] = "it has expired",
	[TOKEN_NOT_YET] = "it is not valid yet",
	[TOKEN_ELSEWHERE] = "it is for another project or agent",
	[TOKEN_REVOKED] = "it was revoked",
	[TOKEN_USED_UP] = "it was presented as often as it may be",
};

static bool is_within(const struct token_right *right, const struct token_extent *extent)
{
	for (size_t i = 0; i < extent->right_count; i++)
		if (token_right_contains(&extent->rights[i], right))
			return true;
	return false;
}

static bool is_same_or_new(const char *before, const char *now)
{
	return !before || !now || str_equal(before, now);
}

/* What a block says beyond what the ones before it leave. */
static bool narrows(const struct token_block *block, const struct token_extent *extent)
{
	if (block->expires_s > extent->expires_s || (extent->uses && block->uses > extent->uses) ||
	    (block->not_before_s && block->not_before_s < extent->not_before_s) ||
	    !is_same_or_new(extent->project, block->project) || !is_same_or_new(extent->agent, block->agent))
		return false;
	for (int i = 0; i < TOKEN_LIMIT_COUNT; i++)
		if (block->limits[i] != UINT64_MAX && block->limits[i] > extent->limits[i])
			return false;
	for (size_t i = 0; i < block->right_count; i++)
		if (!is_within(&block->rights[i], extent))
			return false;
	return true;
}

static void add(struct token_extent *extent, const struct token_block *block)
{
	if (block->expires_s && block->expires_s < extent->expires_s)
		extent->expires_s = block->expires_s;
	if (block->not_before_s > extent->not_before_s)
		extent->not_before_s = block->not_before_s;
	if (block->uses && (!extent->uses || block->uses < extent->uses))
		extent->uses = block->uses;
	for (int i = 0; i < TOKEN_LIMIT_COUNT; i++)
		if (block->limits[i] < extent->limits[i])
			extent->limits[i] = block->limits[i];
	if (block->right_count) {
		extent->rights = block->rights;
		extent->right_count = block->right_count;
	}
	if (block->project)
		extent->project = block->project;
	if (block->agent)
		extent->agent = block->agent;
}

/* The blocks before the one of this number. */
static void extent_of(const struct token *token, size_t count, struct token_extent *ret_extent)
{
	struct token_extent extent = { .expires_s = UINT64_MAX };

	for (int i = 0; i < TOKEN_LIMIT_COUNT; i++)
		extent.limits[i] = UINT64_MAX;
	for (size_t i = 0; i < count; i++)
		add(&extent, &token->links[i].block);
	*ret_extent = extent;
}

void token_extent(const struct token *token, struct token_extent *ret_extent)
{
	extent_of(token, token->count, ret_extent);
}

bool token_narrows(const struct token *token)
{
	for (size_t i = 1; i < token->count; i++) {
		struct token_extent before;

		extent_of(token, i, &before);
		if (!narrows(&token->links[i].block, &before))
			return false;
	}
	return true;
}

static bool is_agent(const struct token_place *place, const char *agent)
{
	for (size_t i = 0; i < ARRAY_SIZE(place->agents); i++)
		if (place->agents[i] && str_equal(place->agents[i], agent))
			return true;
	return !place->agents[0];
}

enum token_fault token_check(const struct token *token, const struct token_place *place)
{
	struct token_extent extent;

	token_extent(token, &extent);
	if (!token_narrows(token))
		return TOKEN_WIDENED;
	if (place->now_s >= extent.expires_s)
		return TOKEN_EXPIRED;
	if (extent.not_before_s > TOKEN_SKEW_S && place->now_s < extent.not_before_s - TOKEN_SKEW_S)
		return TOKEN_NOT_YET;
	if ((extent.project && place->project && !str_equal(extent.project, place->project)) ||
	    (extent.agent && !is_agent(place, extent.agent)))
		return TOKEN_ELSEWHERE;
	return TOKEN_FINE;
}

bool token_allows(const struct token *token, const struct grant_terms *asked)
{
	struct token_extent extent;

	token_extent(token, &extent);
	for (size_t i = 0; i < extent.right_count; i++) {
		struct grant_terms terms = token_right_terms(&extent.rights[i]);

		if (token_right_is_grant(&extent.rights[i]) && grant_covers(&terms, asked))
			return true;
	}
	return false;
}
