/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One run of atoll-token: what was asked for, and what is open. Its verbs share it; each is one row of main.c's table.
 * Nothing of a token is printed but what it says.
 */

#include "base/options.h"
#include "token/keys.h"
#include "token/ledger.h"

struct token_options {
	const char *keys, *store;            /* directories */
	struct option_list allow, limit, agent;
	const char *expires, *not_before, *uses, *project;
	bool seal, json, remove;
};

struct job {
	struct token_options given;
	char **words;                        /* that follow the verb */
	size_t word_count;
	struct token_keys keys;
	int store_fd;                        /* FD_NONE: there is none yet */
	int input_fd;                        /* what the token is read from; FD_NONE: from text, or none is needed */
	const char *input_text;              /* $ATOLL_TOKEN; NULL */
	uint64_t now_s;
	struct err *err;
};

/* The token that was given. TOKEN_FINE, TOKEN_MALFORMED; negative with *err: it could not be read. */
int job_read_token(struct job *job, struct token *ret_token) MUST_USE;

/*
 * Everything that is to be asked of a token but how often it was used. *ret_token is for token_done() also where it
 * does not hold, but for TOKEN_MALFORMED. An enum token_fault, or negative with *err.
 */
int job_judge(struct job *job, struct token *ret_token) MUST_USE;

/* "a token is refused: …", for people, and a line in the log of refusals. */
int job_refuse(struct job *job, const struct token *token, enum token_fault fault) MUST_USE;

/* A line in the log of what was presented. token NULL: nothing can be said of it. Negative with *err. */
int job_log(struct job *job, const struct token *token, enum token_fault fault) MUST_USE;

/* Writes to stdout. */
int job_print(struct job *job, struct buf *out) MUST_USE;

/* What a token says, for people (each line ends with a newline) or as members of a JSON object. */
struct json;
void job_describe(const struct token *token, struct buf *out);
void job_describe_json(const struct token *token, struct json *json);

int cmd_mint(struct job *job);
int cmd_narrow(struct job *job);
int cmd_show(struct job *job);
int cmd_verify(struct job *job);
int cmd_list(struct job *job);
int cmd_revoke(struct job *job);
int cmd_trust(struct job *job);
int cmd_key(struct job *job);
int cmd_take(struct job *job);
