/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The messages between atoll-box and atoll-notify, which tells people outside of the terminal of questions: one process
 * for the desktop, one for a webhook. What comes from inside the sandbox is escaped before it gets here. The box
 * believes an answer that names the number and the hash of a question which it handed over, and nothing else.
 */

#include <stdbool.h>
#include <stdint.h>

#include "wire/asking.h"
#include "wire/frame.h"

/* In atoll-notify. */
enum { NOTIFY_FD = 3 };

enum {
	NOTIFY_OPEN_MAX = 16,          /* questions that are handed over and open; what is more waits at the box */
	NOTIFY_ALERTS_MAX = 85,      /* alerts of a session that are handed over, at most */
	NOTIFY_ADDRESS_MAX = 4096,
	NOTIFY_TROUBLE_MAX = 200,      /* bytes of a reason */
	NOTIFY_START_MAX = 8 << 10,
	NOTIFY_ALERT_MAX = 1024,       /* bytes of what an alert says */
};

enum notify_kind { NOTIFY_DESKTOP, NOTIFY_WEBHOOK, NOTIFY_KIND_COUNT };

/* "desktop", "webhook": as policies, answers and the log name them. */
extern const char *const notify_kind_names[NOTIFY_KIND_COUNT];

enum notify_message {
	/* box -> notify */
	NOTIFY_START = 1,        /* struct notify_start, once; fds: the bundle and the key, where its bits say so */
	NOTIFY_QUESTION,         /* struct notify_question: a new one, or one whose state is another now */
	NOTIFY_CLOSE,            /* u32 number, u32 enum notify_end */
	NOTIFY_ALERT,            /* string kind, string what: nobody answers it, and it is told once */
	/* notify -> box */
	NOTIFY_STATE = 64,       /* u32 1: a person can hear by it, or 0; string: what is wrong, or NULL */
	NOTIFY_ANSWER,           /* struct asking_reply */
};

enum notify_end { NOTIFY_ALLOWED, NOTIFY_DENIED, NOTIFY_OVER, NOTIFY_END_COUNT };

/* "allowed", "denied", "over" */
extern const char *const notify_end_names[NOTIFY_END_COUNT];

enum { NOTIFY_HAS_BUNDLE = 1, NOTIFY_HAS_KEY = 2, NOTIFY_MAY_ANSWER = 4, NOTIFY_FLAGS = 7 };

struct notify_start {
	uint32_t kind;           /* enum notify_kind */
	uint32_t flags;
	uint32_t uid;            /* to become once the bus is reached; 0: as it is */
	const char *session;
	const char *address;     /* of the bus, or the URL */
};

struct notify_question {
	uint32_t number;
	const uint8_t *hash;     /* ASKING_HASH_SIZE bytes */
	uint32_t state;          /* ASKING_WAITS or ASKING_LISTED */
	uint32_t waiting;
	uint64_t left_ms;
	const char *what;        /* all of it in one line, escaped */
	const char *who, *why;   /* escaped; who may be NULL */
	const char *words;       /* the agent's own, escaped; NULL: none */
	const char *json;        /* the members of one JSON object, with its braces */
};

/*
 * put: the whole frame of its type into out, which is reset; 0, or the buffer's error. get: 0, with strings and hash
 * borrowed from the frame; -EBADMSG for what is malformed, has an unknown enum or is beyond the limits above (a
 * question's number of 0 among it): the fields of a struct are zero then, single results untouched. put checks no
 * limit: who sends cuts and escapes first.
 */
int notify_start_put(struct buf *out, const struct notify_start *start) MUST_USE;
int notify_start_get(struct frame *frame, struct notify_start *ret_start) MUST_USE;
int notify_question_put(struct buf *out, const struct notify_question *question) MUST_USE;
int notify_question_get(struct frame *frame, struct notify_question *ret_question) MUST_USE;
int notify_close_put(struct buf *out, uint32_t number, enum notify_end end) MUST_USE;
int notify_close_get(struct frame *frame, uint32_t *ret_number, enum notify_end *ret_end) MUST_USE;
int notify_alert_put(struct buf *out, const char *kind, const char *what) MUST_USE;
int notify_alert_get(struct frame *frame, const char **ret_kind, const char **ret_what) MUST_USE;
int notify_state_put(struct buf *out, bool is_heard, const char *trouble) MUST_USE;
int notify_state_get(struct frame *frame, bool *ret_is_heard, const char **ret_trouble) MUST_USE;

/* As asking_reply_get() reads it, but for ASKING_FOREVER, which only a person's own command writes down. */
int notify_answer_put(struct buf *out, const struct asking_reply *reply) MUST_USE;
int notify_answer_get(struct frame *frame, struct asking_reply *ret_reply) MUST_USE;
