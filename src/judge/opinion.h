/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a verifier answers, read strictly: one JSON object with "verdict" and perhaps "reason"; of a model the same as
 * the content of its one message. Whatever else comes is not clear. Hostile. Run by atoll-judge.
 */

#include <stddef.h>

#include "base/buf.h"
#include "wire/judge.h"

enum { OPINION_MAX = 64 << 10 };

struct opinion {
	enum judge_verdict verdict;
	char reason[JUDGE_REASON_MAX]; /* escaped for a terminal; "" where none was given */
};

/* Before the process confines itself: jansson seeds its tables. */
void opinion_prepare(void);

/* {"verdict":"deny","reason":"…"} */
void opinion_parse(const void *bytes, size_t size, struct opinion *ret_opinion);

/* What an OpenAI-compatible endpoint answers: choices[0].message.content is as above. */
void opinion_parse_completion(const void *bytes, size_t size, struct opinion *ret_opinion);

/* The request to it: instructions, and the case, which is data. */
void opinion_put_request(struct buf *out, const char *model, const char *json);

/* ---- for proposal.c ---- */

struct json_t;

/* The content of the one message of a completion, borrowed from it; NULL: it is none. */
const char *opinion_content(const struct json_t *completion);

/* Appends the request of an OpenAI-compatible chat: two messages, json as the user's, temperature 0, no stream. */
void opinion_put_completion(struct buf *out, const char *model, const char *instructions, const char *json);
