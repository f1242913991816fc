/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The messages between atoll-box and atoll-desk, which takes what something inside asks for as lines of text. The box
 * believes it no more than the sandbox: what it passes on are words to be judged, and shown to people.
 */

#include <stdbool.h>
#include <stdint.h>

#include "wire/frame.h"

/* In atoll-desk. */
/* What stands inside: the socket, and its client. */
#define DESK_SOCKET "/run/atoll/ask.sock"
#define DESK_CLIENT "/run/atoll/bin/atoll-request"

enum { DESK_FD = 3 };

enum {
	DESK_SUBJECT_MAX = 4096,     /* bytes with the NUL */
	DESK_REASON_MAX = 1024,
	DESK_ARGV_MAX = 64,
	DESK_MESSAGE_MAX = 20 << 10, /* more than the longest line can become */
	DESK_NEAR_MAX = 6,
	DESK_WAIT_MAX_MS = 24 * 3600 * 1000,
};

enum desk_message {
	/* box -> desk */
	DESK_START = 1,          /* fd: the socket that listens inside */
	DESK_ANSWER,             /* struct desk_answer */
	DESK_TOLD,               /* struct desk_status */
	/* desk -> box */
	DESK_WANT = 64,          /* struct desk_want; -> DESK_ANSWER, and another one after DESK_WAITS */
	DESK_EXPLAIN,            /* struct desk_want; -> DESK_ANSWER */
	DESK_WAIT,               /* u32 id, u32 question, u64 wait_ms: as if what it asks were wanted again */
	DESK_STATUS,             /* u32 id; -> DESK_TOLD */
	DESK_FORGET,             /* u32 id: nobody waits for the answer any more */
	DESK_TOKEN,              /* u32 id, string: the text of a token; -> DESK_ANSWER */
	DESK_CHECKPOINT,         /* u32 id, string: what it is for, or ""; -> DESK_ANSWER */
};

enum desk_verdict {
	DESK_DENIED,
	DESK_ALLOWED,
	DESK_UNANSWERED,         /* nobody heard of it, or nobody answered; or too much is asked */
	DESK_WAITS,              /* for a person's answer */
	DESK_ASKS,               /* of DESK_EXPLAIN: a person would be asked */
	DESK_INVALID,            /* it cannot be asked like this; nothing was decided */
	DESK_VERDICT_COUNT,
};

extern const char *const desk_verdict_names[DESK_VERDICT_COUNT]; /* "denied", "allowed", … */

/* What may be asked for, as text has it: "file.read" …; the numbers are those of enum action_kind. */
struct desk_want {
	uint32_t id;             /* of this request: the desk's to choose, never used again */
	uint32_t kind;           /* enum action_kind */
	const char *subject;     /* path, host, program */
	uint32_t port;           /* of a host; 0: none */
	char **argv;             /* of a program; empty: not said. When received, the array is owned */
	const char *reason;      /* or NULL */
	uint64_t wait_ms;        /* 0: as long as the policy lets it */
};

struct desk_answer {
	uint32_t id;
	uint32_t verdict;        /* enum desk_verdict */
	uint32_t question;       /* its number, for a person; 0: none */
	const char *rule, *reason, *hint; /* never NULL when received */
	char **near;             /* what is allowed and like it; when received, the array is owned */
};

struct desk_status {
	uint32_t id;
	const char *session, *policy, *level;
	uint32_t is_heard;       /* somebody would see a question now */
	uint64_t denied;         /* refusals until now */
};

/* Whether it stays within the bounds above. */
bool desk_want_is_sound(const struct desk_want *want);

/*
 * put: the whole frame into out, which is reset; 0, or the buffer's error. type: DESK_WANT or DESK_EXPLAIN. Nothing is
 * checked, so that a want that is not sound is refused by its reader.
 */
int desk_want_put(struct buf *out, uint16_t type, const struct desk_want *want) MUST_USE;
int desk_answer_put(struct buf *out, const struct desk_answer *answer) MUST_USE;
int desk_status_put(struct buf *out, const struct desk_status *status) MUST_USE;

/*
 * get: 0, or -EBADMSG with all fields zero and nothing owned: for what is malformed or beyond the limits above, a want
 * that is not sound among it. Strings are borrowed from the frame; argv and near are the caller's (free()). What a
 * desk_answer has as NULL arrives as "".
 */
int desk_want_get(struct frame *frame, struct desk_want *ret_want) MUST_USE;
int desk_answer_get(struct frame *frame, struct desk_answer *ret_answer) MUST_USE;
int desk_status_get(struct frame *frame, struct desk_status *ret_status) MUST_USE;
