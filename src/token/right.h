/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One right of a token: whether it is well formed, whether it is within another (exactly, never by guess: where that
 * cannot be told, it is not), and its text for people. Pure; run by atoll-token.
 */

#include "policy/grants.h"
#include "token/format.h"

extern const char *const token_kind_names[TOKEN_KIND_END];     /* "file.read", …; [0] is "" */
extern const char *const token_limit_names[TOKEN_LIMIT_COUNT]; /* "memory", … */

/* Paths are normalised, hosts lower case, and nothing is in it that could be taken for a pattern. */
bool token_right_is_valid(const struct token_right *right);

/* Whether everything that inner lets happen is what outer lets happen. Both valid. */
bool token_right_contains(const struct token_right *outer, const struct token_right *inner);

/* Whether it is something that the box grants; else it is a trust level. */
bool token_right_is_grant(const struct token_right *right);

/* The level that a right of TOKEN_TRUST names; TRUST_NONE: it is another one. */
enum trust_level token_right_level(const struct token_right *right);

/* As the box grants it, which token_right_is_grant() says; borrows from the right. */
struct grant_terms token_right_terms(const struct token_right *right);

/* The room for the words of one. */
struct token_right_room {
	char text[TOKEN_STRING_MAX * 2];
};

/*
 * From "KIND=SUBJECT" (doc/man/atoll-token.1.scd has the forms); what it borrows is in room or static. -EINVAL with
 * *ret_problem, a sentence.
 */
int token_right_parse(const char *text, struct token_right_room *room, struct token_right *ret_right,
		      const char **ret_problem) MUST_USE;

/* The same text again, not escaped. */
void token_right_format(const struct token_right *right, struct buf *out);
