/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a token comes to, here and now: whether each block narrows the ones before, whether it holds at this time and
 * for this project and agent, and what is left of rights and limits. Whoever says yes to a token has asked in this
 * order: is it genuine (chain.h), is its issuer trusted, token_check(), is it revoked or used up (ledger.h). Pure.
 */

#include "token/right.h"

enum token_fault {
	TOKEN_FINE,
	TOKEN_MALFORMED,
	TOKEN_FORGED,            /* a signature or the proof is not right */
	TOKEN_UNTRUSTED,         /* nobody here trusts its issuer */
	TOKEN_WIDENED,           /* a block claims more than the ones before it */
	TOKEN_EXPIRED,
	TOKEN_NOT_YET,
	TOKEN_ELSEWHERE,         /* it is for another project or agent */
	TOKEN_REVOKED,
	TOKEN_USED_UP,
	TOKEN_FAULT_COUNT,
};

extern const char *const token_fault_names[TOKEN_FAULT_COUNT];  /* "forged", … */
extern const char *const token_fault_texts[TOKEN_FAULT_COUNT];  /* "a signature in it is not right", … */

/* Clocks of two machines may differ by so much: a token holds so long before its time, but never after it. */
enum { TOKEN_SKEW_S = 60 };

/* Where it is presented. */
struct token_place {
	uint64_t now_s;          /* CLOCK_REALTIME */
	const char *project;     /* real path; NULL: not asked about */
	const char *agents[3];   /* names that the agent goes by: policy, session, agent; [0] NULL: not asked about */
};

/* What is left of all blocks together: borrows from the token. */
struct token_extent {
	uint64_t not_before_s, expires_s;
	uint32_t uses;                      /* the fewest that a block grants; 0: none counts them */
	uint64_t limits[TOKEN_LIMIT_COUNT]; /* UINT64_MAX: none */
	const struct token_right *rights;   /* of the last block that has some */
	size_t right_count;
	const char *project, *agent;        /* NULL: any */
};

/* Fills in the latest begin, the earliest end, the fewest uses and the least limits that any block of the token has. */
void token_extent(const struct token *token, struct token_extent *ret_extent);

/* Whether each block claims no more than the ones before it leave. */
bool token_narrows(const struct token *token);

/* TOKEN_FINE, TOKEN_WIDENED, TOKEN_EXPIRED, TOKEN_NOT_YET or TOKEN_ELSEWHERE. */
enum token_fault token_check(const struct token *token, const struct token_place *place);

/* Whether it lets this happen: one of its rights covers it. Nothing is asked but that. */
bool token_allows(const struct token *token, const struct grant_terms *asked);
