/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A capability token that was presented and holds, on its way from atoll-token, which read it, to `atoll` and the box:
 * what it lets happen, how long, and what it leaves of the limits. The token itself is in none of it.
 */

#include "wire/frame.h"

enum { TOKEN_FD = 3 };                   /* in atoll-token: where the answer goes */

enum token_message {
	TOKEN_HOLDS = 1,                 /* struct token_held, then each struct token_allowance */
	TOKEN_REFUSED,                   /* struct token_refused */
};

enum { TOKEN_HELD_MAX = 16 << 10, TOKEN_HELD_LIMITS = 6 };

struct token_held {
	const char *id;                  /* for people and the log */
	uint64_t expires_s;              /* CLOCK_REALTIME */
	uint64_t limits[TOKEN_HELD_LIMITS]; /* memory, processes, disk, wall ms, cpu ms, network; UINT64_MAX: none */
	uint32_t trust;                  /* enum trust_level that it lends the run; 0: none */
	uint32_t count;                  /* of allowances */
};

struct token_allowance {
	uint32_t kind, flags;            /* enum action_kind; GRANT_* (policy/grants.h) */
	uint32_t port;                   /* 0: any */
	const char *subject, *method, *path; /* method, path: NULL: any */
	char **argv;                     /* empty: any; received: the array is owned, the strings are borrowed */
};

struct token_refused {
	const char *fault;               /* "forged", … */
	const char *id;                  /* NULL: nothing can be said of it */
	const char *reason;              /* one line, for whoever presented it */
};

/*
 * put: the whole frame into out, which is reset; 0, or the buffer's error. get: 0, with the strings borrowed from the
 * frame, or -EBADMSG with all of them NULL.
 */
int token_refused_put(struct buf *out, const struct token_refused *refused) MUST_USE;
int token_refused_get(struct frame *frame, struct token_refused *ret_refused) MUST_USE;

/* Adds to a frame that was begun. */
void token_held_put(struct buf *out, const struct token_held *held);
void token_allowance_put(struct buf *out, const struct token_allowance *allowance);

/* In this order: the one, then count of the others, then frame_finish(). -EBADMSG. */
int token_held_get(struct frame *frame, struct token_held *ret_held) MUST_USE;
int token_allowance_get(struct frame *frame, struct token_allowance *ret_allowance) MUST_USE;
