/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Questions to people, their answers and what was granted, as the control socket carries them (wire/link.h): between
 * `atoll ask`, `approve`, `deny`, `grants` and atoll-box. What comes from inside the sandbox is in here as it is:
 * whoever shows it escapes it.
 */

#include <stdbool.h>

#include "wire/frame.h"

enum { ASKING_HASH_SIZE = 32 };

/* Types of the frames that lists come in, within LINK_REPLY: u64 what to ask after next, then questions; grants. */
enum { ASKING_QUESTIONS = 71, ASKING_GRANTS = 73 };

enum asking_state {
	ASKING_WAITS,            /* something inside waits for the answer */
	ASKING_LISTED,           /* nobody could hear, or nobody answered: an answer is for the next time */
	ASKING_ANSWERED,         /* allowed or denied: kept for a while, for those who look */
	ASKING_STATE_COUNT,
};

/* How somebody looks at questions. */
enum asking_look {
	ASKING_LIST,             /* all that are there, each as a whole */
	ASKING_FOLLOW,           /* those that come; who asks the same as one that was shown is not told of */
	ASKING_GLANCE,           /* those that are there, again and again: what was shown before stays what it was */
	ASKING_FIND,             /* a program looks for the one that a person has named: nobody is shown anything */
	ASKING_LOOK_COUNT,
};

enum asking_scope {
	ASKING_ONCE,             /* those that waited when it was shown; where none does, the next in ten minutes */
	ASKING_USES,             /* so many */
	ASKING_TIME,             /* as often as wanted, for so long */
	ASKING_SESSION,          /* until the sandbox ends */
	ASKING_FOREVER,          /* as SESSION; the client has written it to the user's policy */
	ASKING_SCOPE_COUNT,
};

/* What is asked, as the box holds it and as people are shown it. */
struct asking_shown {
	uint32_t kind;           /* enum action_kind */
	uint32_t flags;          /* of grant_terms: GRANT_BELOW, GRANT_OUTSIDE, GRANT_VIEW */
	const char *subject;
	char **argv;             /* NULL: none; when received, the array is owned and the strings are borrowed */
	const char *method, *path, *program, *cwd; /* each may be NULL */
	uint32_t port;           /* 0: none */
	const char *rule, *why;  /* id of the rule that asks, and its reason in one sentence */
	const char *words;       /* the agent's own reason, or NULL: not to be believed */
};

struct asking_question {
	uint32_t number;         /* unique in its session, never used again */
	const uint8_t *hash;     /* ASKING_HASH_SIZE bytes, of exactly what is asked */
	uint32_t state;          /* enum asking_state */
	uint32_t waiting, times; /* how many wait who are part of it; how often it was asked */
	uint32_t pid;            /* of the first who asked, as the host sees it; 0: not known */
	uint64_t asked_ns;       /* CLOCK_REALTIME, the first time */
	uint64_t left_ms;        /* until it is refused, or forgotten */
	uint32_t is_allowed;     /* ASKING_ANSWERED: what the answer was */
	struct asking_shown shown;
};

struct asking_reply {
	uint32_t number;
	const uint8_t *hash;     /* of the question that the person was shown */
	uint32_t is_allowed;
	uint32_t scope;          /* enum asking_scope */
	uint64_t amount;         /* ASKING_USES: how many; ASKING_TIME: ms; else 0 */
};

struct asking_grant {
	uint32_t number;
	uint32_t is_refusal;
	uint32_t question;       /* that it answers; 0: none (a token) */
	uint32_t scope;
	uint64_t used, uses_left; /* UINT64_MAX: no bound */
	uint64_t left_ms;        /* UINT64_MAX: as long as the sandbox */
	uint64_t given_ns;       /* CLOCK_REALTIME */
	const char *by;          /* "user 1000", "token …" */
	struct asking_shown shown;
};

/* One more in a frame that was begun, and the next of them: 1; 0: that was the last; -EBADMSG. */
void asking_question_put(struct buf *out, const struct asking_question *question);
int asking_question_get(struct frame *frame, struct asking_question *ret_question) MUST_USE;
void asking_grant_put(struct buf *out, const struct asking_grant *grant);
int asking_grant_get(struct frame *frame, struct asking_grant *ret_grant) MUST_USE;

/* Into a frame that was begun; and the rest of one. */
void asking_reply_put(struct buf *out, const struct asking_reply *reply);
int asking_reply_get(struct frame *frame, struct asking_reply *ret_reply) MUST_USE;
