/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a verifier proposes to take away from a policy for one run, read strictly: one JSON object with "narrow" and
 * perhaps "reason"; of a model the same as the content of its one message. Whatever else comes is no proposal. What
 * "narrow" says is written down again, in one form and bounded, and not judged: atoll-policy does that
 * (lang/compile/narrow.h). Hostile. Run by atoll-judge.
 */

#include <stddef.h>

#include "base/buf.h"
#include "wire/judge.h"

struct proposal {
	char *text;                    /* owned: a JSON object over several lines; NULL: none */
	char reason[JUDGE_REASON_MAX]; /* the verifier's, UTF-8; or why there is none; "": not given */
};

/* {"narrow":{…},"reason":"…"}; of anything else nothing is proposed, and the reason says why. For proposal_done(). */
void proposal_parse(const void *bytes, size_t size, struct proposal *ret_proposal);

/* What an OpenAI-compatible endpoint answers: choices[0].message.content is as above. */
void proposal_parse_completion(const void *bytes, size_t size, struct proposal *ret_proposal);

/* Frees what was parsed; fine for an empty one. */
void proposal_done(struct proposal *proposal);

/* The request to it: instructions, and the case, which is data. */
void proposal_put_request(struct buf *out, const char *model, const char *json);
