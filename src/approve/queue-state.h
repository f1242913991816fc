/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the queue of questions holds, shared by the files of approve/ and by nobody else: queue.c asks, queue-answer.c
 * answers and grants, queue-shown.c keeps apart who asked before and after people were shown it, queue-log.c writes
 * it down, queue-list.c copies and tells it. See queue.h.
 */

#include "approve/queue.h"

struct queue_waiting {
	struct queue_waiter waiter;     /* done NULL: it was forgotten */
	uint64_t until_ns;
	bool is_late;                    /* came when the question was sealed: no answer to it is about this one */
};

struct question {
	uint32_t number, times;
	struct hash hash;                /* grant_identity() of shown */
	enum asking_state state;
	bool is_allowed;                 /* ASKING_ANSWERED */
	uint32_t noticed;                /* 1u << kind of those notices that told of it */
	bool is_prompted;                /* the person at the terminal was asked, or cannot be */
	bool is_sealed;                  /* somebody was shown it: who waited then is what an answer is about */
	pid_t pid;
	uint64_t asked_ns;               /* CLOCK_REALTIME */
	uint64_t until_ns;               /* CLOCK_MONOTONIC: WAITS: of the last waiter; else when it is forgotten */
	uint64_t generation;             /* of its last change */
	struct queue_waiting *waiting;  /* owned */
	size_t waiting_count, waiting_size;
	struct asking_shown shown;       /* all owned */
};

struct grant {
	uint32_t number, question;       /* question 0: none */
	enum asking_scope scope;
	uint64_t used, uses_left;        /* UINT64_MAX: no bound */
	uint64_t until_ns;               /* CLOCK_MONOTONIC; UINT64_MAX: as long as the sandbox */
	uint64_t given_ns;               /* CLOCK_REALTIME */
	char by[48];
	struct asking_shown shown;       /* all owned; what is not set is not bound; flags: GRANT_REFUSES too */
};

/* Who is being told: forgetting reaches them too. */
struct delivery {
	struct queue_waiting *waiting;
	size_t count;
};

struct queue_texts {
	char rule[32], hint[128];
};

struct queue_state {
	struct question *questions[QUEUE_QUESTIONS_MAX];
	size_t question_count, waiting_count;
	struct grant *grants[QUEUE_GRANTS_MAX]; /* by number */
	size_t grant_count;
	uint32_t last_question, last_grant;
	uint64_t generation;
	uint64_t next_ns;                /* nothing is due before */
	uint64_t refilled_ns, tokens;
	bool is_exhausted;               /* and it was said */
	struct delivery delivery;
	struct queue_texts texts;       /* of the last outcome */
	uint64_t asked, allowed, denied, unanswered, too_many;
};

/* ---- queue-list.c ---- */

/* Borrows from the request; the vector of arguments is read only. */
struct asking_shown queue_shown_of(const struct queue_request *request);
/* All of it anew; -ENOMEM. */
int queue_shown_copy(const struct asking_shown *shown, struct asking_shown *ret_copy) MUST_USE;

/* Frees the texts of a copy of queue_shown_copy(), and leaves none of them behind. */
void queue_shown_done(struct asking_shown *shown);

/* As people are told of it; borrows from the question. */
struct asking_question queue_question_of(const struct question *question, uint64_t now_ns);

/* How many wait who are part of the question: the first ones. */
size_t queue_count_shown(const struct question *question);

/* Somebody is shown it: whoever asks the same from now on is not part of it. By whatever shows a question. */
void queue_seal(struct question *question);

/* Bytes of all that must be shown whole. */
size_t queue_shown_size(const struct asking_shown *shown);

/* The same as terms of a grant, which borrow its texts. */
struct grant_terms queue_terms(const struct asking_shown *shown);

/* ---- queue.c ---- */

/* The state, made when it is first needed; NULL: out of memory. */
struct queue_state *queue_open_state(struct queue *queue);

/* It has changed: who follows is told of it. */
void queue_touch(struct queue_state *state, struct question *question);

/* Something is due then (CLOCK_MONOTONIC). */
void queue_plan(struct queue_state *state, uint64_t when_ns);

/* A question of what is shown, which it takes over; NULL: no room, or out of memory. */
struct question *queue_question_new(struct queue_state *state, struct asking_shown *shown, const struct hash *hash);

/*
 * From the waiter first on they wait for another question, of the same thing, which nobody was shown. Negative: the log
 * failed, or out of memory.
 */
int queue_split(struct queue *queue, struct question *question, size_t first) MUST_USE;

/* Nobody waits for it any more; it is kept for a while. */
void queue_shelve(struct queue_state *state, struct question *question, enum asking_state next);

/* Tells the first count of those that wait, and forgets them. The first negative of theirs; all are told. */
int queue_deliver(struct queue_state *state, struct question *question, size_t count,
		   const struct queue_outcome *outcome) MUST_USE;

/* ---- queue-answer.c ---- */

/* The refusal or grant that covers it; a refusal wins. NULL: none. */
struct grant *queue_grant_find(struct queue_state *state, const struct grant_terms *asked);

/* It allows nothing any more, and is removed when something else is due. */
bool queue_grant_is_spent(const struct grant *grant, uint64_t now_ns);

/* Removes those that are spent. */
void queue_grants_expire(struct queue_state *state, uint64_t now_ns);

/* Takes it out of the list and frees it: nothing is written, and who waits is not told. */
void queue_grant_remove(struct queue_state *state, struct grant *grant);

/* ---- queue-log.c: negative, the log failed ---- */

/* The record that a question was asked, with all that a person is shown of it. */
int queue_log_open(struct queue *queue, const struct question *question) MUST_USE;

struct queue_answer_log {
	const char *via;                 /* "timeout", … */
	const struct queue_answerer *by; /* NULL: nobody */
	enum asking_scope scope;
	uint64_t amount;
	uint32_t grant;                  /* 0: none */
	bool is_allowed;
};

/* The record of an answer, a timeout or a grant that answered: of all who wait for the question. */
int queue_log_answer(struct queue *queue, const struct question *question, const struct queue_answer_log *answer)
	MUST_USE;

/* The record that a grant was made or taken back; by NULL: by nobody who is connected. */
int queue_log_grant(struct queue *queue, const struct grant *grant, bool is_revoked, const struct queue_answerer *by)
	MUST_USE;
