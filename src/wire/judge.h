/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The messages between atoll-box and atoll-judge, which brings an action before the external verifier of the policy: a
 * command of the user, or a model. `atoll run --narrow` asks it one thing before: what the task of the run does not
 * need. What comes back can only tighten, so nothing of it has to be believed to be safe.
 */

#include <stdbool.h>
#include <stdint.h>

#include "wire/frame.h"

/* In atoll-judge. */
enum { JUDGE_FD = 3 };

enum {
	JUDGE_OPEN_MAX = 64,           /* cases under way */
	JUDGE_CASE_MAX = 100 << 10,    /* bytes of one */
	JUDGE_REASON_MAX = 256,        /* with the NUL */
	JUDGE_PROPOSAL_MAX = 32 << 10, /* bytes of the text of one */
};

enum judge_message {
	/* box -> judge */
	JUDGE_START = 1,         /* struct judge_start, once; fds: the bundle and the secret, where its bits say so */
	JUDGE_CASE,              /* u32 id, string: one JSON object (doc/format/verify-external.md) */
	JUDGE_FORGET,            /* u32 id: nobody waits for it any more */
	JUDGE_NARROW,            /* as JUDGE_CASE, of a run that is about to begin: a proposal is wanted */
	/* judge -> box */
	JUDGE_VERDICT = 64,      /* u32 id, u32 enum judge_verdict, string reason */
	JUDGE_PROPOSAL,          /* u32 id, string text (NULL: there is none), string reason */
};

enum judge_verdict { JUDGE_ALLOW, JUDGE_DENY, JUDGE_UNCLEAR, JUDGE_VERDICT_COUNT };

extern const char *const judge_verdict_names[JUDGE_VERDICT_COUNT]; /* "allow", "deny", "unclear" */

enum { JUDGE_HAS_BUNDLE = 1, JUDGE_HAS_SECRET = 2, JUDGE_FLAGS = 3 };

struct judge_start {
	uint32_t flags;
	uint64_t timeout_ms;
	char **command;          /* empty: a model is asked. When received, the array is owned */
	char **environment;      /* of the command; as above */
	const char *url, *model; /* NULL: a command is asked */
};

/*
 * put: the whole frame into out, which is reset; 0, or the buffer's error. get: 0, or -EBADMSG with all fields zero and
 * nothing owned: for unknown flags, no time at all, or not exactly one of a command and a URL with its model.
 */
int judge_start_put(struct buf *out, const struct judge_start *start) MUST_USE;
int judge_start_get(struct frame *frame, struct judge_start *ret_start) MUST_USE;

/*
 * One case; get reads JUDGE_CASE and JUDGE_NARROW. id: never 0 on the way in. *ret_json: borrowed from the frame, at
 * most JUDGE_CASE_MAX bytes, not parsed. -EBADMSG sets nothing. A JUDGE_FORGET is a u32 that its reader gets itself.
 */
int judge_case_put(struct buf *out, uint32_t id, const char *json) MUST_USE;
int judge_case_get(struct frame *frame, uint32_t *ret_id, const char **ret_json) MUST_USE;
int judge_narrow_put(struct buf *out, uint32_t id, const char *json) MUST_USE;
int judge_forget_put(struct buf *out, uint32_t id) MUST_USE;

/*
 * put cuts a reason of JUDGE_REASON_MAX bytes or more, between characters. get: 0, with the reason borrowed from the
 * frame, as below; -EBADMSG, and nothing is set, for an id of 0, an unknown verdict, a reason that is NULL or longer.
 */
int judge_verdict_put(struct buf *out, uint32_t id, enum judge_verdict verdict, const char *reason) MUST_USE;
int judge_verdict_get(struct frame *frame, uint32_t *ret_id, enum judge_verdict *ret_verdict,
		      const char **ret_reason) MUST_USE;

/*
 * text: a JSON object, hostile, of at most JUDGE_PROPOSAL_MAX bytes; NULL: none that is clear, and reason says why.
 * What comes back is borrowed from the frame; the reason is UTF-8 of whoever answered, and not escaped.
 */
int judge_proposal_put(struct buf *out, uint32_t id, const char *text, const char *reason) MUST_USE;
int judge_proposal_get(struct frame *frame, uint32_t *ret_id, const char **ret_text, const char **ret_reason) MUST_USE;
