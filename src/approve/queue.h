/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Questions to people, and what was granted: one queue for every gate of the box. A gate whose
 * policy_decide() says ASK comes here with the action and is told at once, or later through its waiter. What
 * answers is the control socket, a prompt or a notice; who asks does not know. Run by atoll-box.
 *
 * The folder approve/ is this queue, its channels to people (prompt.h, notifier.h), and what answers in their
 * place: the grants of a token (token-grants.h), and a second judge that can only tighten (reviewer.h).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "policy/grants.h"
#include "supervise/module.h"
#include "wire/asking.h"

struct buf;
struct json;
struct queue_state;
struct run;
struct runtime_mounts;

enum {
	QUEUE_QUESTIONS_MAX = 1024,     /* waiting and listed together; the oldest that nobody waits for goes first */
	QUEUE_WAITERS_MAX = 4096,       /* of all questions */
	QUEUE_GRANTS_MAX = 512,         /* refusals that are remembered too */
	QUEUE_TEXT_MAX = 8 << 10,       /* bytes of one question: what is longer, nobody can judge */
	QUEUE_WORDS_MAX = 1 << 10,      /* of the agent's reason; the rest is cut */
	QUEUE_BURST = 100,              /* questions at once; one more every QUEUE_REFILL_MS */
	QUEUE_REFILL_MS = 1000,
	QUEUE_LISTED_MS = 600000,       /* how long one stays listed that nobody waits for */
	QUEUE_NEXT_MS = 600000,         /* how long ASKING_ONCE holds for the next time */
	QUEUE_LOOK_MS = 250,            /* how often those who wait are looked for */
};

/* One way to people. */
struct queue_channel {
	bool (*is_heard)(void *context);     /* somebody hears of questions there, as far as can be known now */
	void (*ring)(void *context);         /* a new question came; NULL: nothing rings there */
	void *context;
};

enum { QUEUE_CHANNELS = 3 };

struct queue {
	struct run *run;                     /* both borrowed */
	struct runtime_mounts *mounts;       /* where what was allowed is brought in */
	struct queue_channel channels[QUEUE_CHANNELS];
	struct queue_state *state;           /* owned; NULL: there were no questions and grants yet */
	uint64_t listeners_until_ns;         /* has_listeners is believed */
	bool has_listeners;
};

struct queue_request {
	struct action action;            /* borrowed during the call */
	struct decision decision;        /* that asks: rule and reason; borrowed */
	pid_t pid;                       /* host pid of the caller, 0: none */
	struct grant_actor actor;        /* the caller's program and, for a command, its directory; each may be NULL */
	uint32_t flags;                  /* GRANT_BELOW: a directory and all below it is asked for; GRANT_OUTSIDE */
	const char *words;               /* the agent's own reason, or NULL; hostile */
	uint64_t wait_max_ms;            /* 0: what the policy says */
};

enum queue_verdict {
	QUEUE_DENIED,                   /* somebody said no, now or before */
	QUEUE_ALLOWED,
	QUEUE_UNANSWERED,               /* nobody can hear of it, or nobody answered in time */
	QUEUE_TOO_MANY,                 /* or too long to be shown */
};

/* All text is borrowed: until the next call into this module, by a waiter until it returns. */
struct queue_outcome {
	enum queue_verdict verdict;
	struct rule_origin rule;         /* "ask.grant[3]", or the rule that asks */
	const char *reason, *hint;       /* never NULL */
	uint32_t grant;                  /* that was used; 0: none */
	uint32_t question;               /* 0: none was made */
	uint64_t until_ns;               /* QUEUE_ALLOWED: CLOCK_MONOTONIC; UINT64_MAX: nothing ends it but a person */
};

struct queue_waiter {
	/* Negative: the log failed, and the sandbox ends. May begin and forget others. */
	int (*done)(void *context, uint64_t token, const struct queue_outcome *outcome);
	/*
	 * Asked every QUEUE_LOOK_MS: true where who waits has died, and then done() is not called any more. NULL:
	 * queue_forget() says so.
	 */
	bool (*is_gone)(void *context, uint64_t token);
	void *context;
	uint64_t token;
};

struct queue_grant_request {
	struct grant_terms terms;        /* borrowed */
	enum asking_scope scope;
	uint64_t amount;                 /* ASKING_USES: how many; ASKING_TIME: ms */
	const char *by;                  /* for the log: "token 3f2a…"; borrowed */
};

/*
 * 0: *ret_outcome is the answer; 1: waiter->done() will be called exactly once, and *ret_outcome has the number of the
 * question; negative: the log failed. waiter NULL:
 * who asks cannot wait, so it is answered at once and stays listed.
 */
int queue_begin(struct queue *queue, const struct queue_request *request, const struct queue_waiter *waiter,
		 struct queue_outcome *ret_outcome) MUST_USE;

/*
 * Whether a grant covers it, or a refusal that is remembered, without asking anybody: 1 and *ret_outcome; 0: neither.
 * is_used: what counts uses counts this one. Negative: the log failed.
 */
int queue_find(struct queue *queue, const struct queue_request *request, bool is_used,
		struct queue_outcome *ret_outcome) MUST_USE;

/* The caller is gone: done() is not called any more. A question that nobody waits for stays listed. */
void queue_forget(struct queue *queue, const struct queue_waiter *waiter);

/* Something that needs no question (a token). -ENOSPC: too many; another negative: the log failed. */
int queue_grant_add(struct queue *queue, const struct queue_grant_request *request, uint32_t *ret_number) MUST_USE;

/*
 * What was allowed (outcome) and lies outside of the sandbox's view comes into it, and stays for as long as
 * the grant that allowed it. What was allowed once, or so many times, cannot be counted there: it has a grant
 * of its own, which people see and can take back, and goes after QUEUE_NEXT_MS. runtime_mount_show() was
 * called before. 0; 1: it cannot be brought in, *err says why; negative: the log failed.
 */
int queue_bring_in(struct queue *queue, const struct action *action, const struct queue_outcome *outcome,
		    struct err *err) MUST_USE;

/* Whether somebody waits to hear about this path. */
bool queue_waits_for_path(const struct queue *queue, const char *path);

/* Whether anything of the network was granted that still holds. */
bool queue_has_network_grants(const struct queue *queue);

/* Whether anybody would hear of a question now. */
bool queue_is_heard(struct queue *queue);

/*
 * The same for who asks at every turn of the loop: who follows all sandboxes (listeners.h), for whom a look costs as
 * much as all else of a connection, is looked for every now and then.
 */
bool queue_was_heard(struct queue *queue);

/* Nobody can hear any more: what waits is refused now, and stays listed. Negative: the log failed. */
int queue_refuse_all(struct queue *queue) MUST_USE;

/* Nothing runs inside any more: the same, of whatever still waits. */
int queue_end(struct queue *queue) MUST_USE;

/*
 * Who waits is gone before anybody answered: 1 and *ret_outcome, by which it was refused; 0: nobody waits so. Before
 * queue_forget(), or from is_gone(). Negative: the log failed.
 */
int queue_give_up(struct queue *queue, const struct queue_waiter *waiter, struct queue_outcome *ret_outcome) MUST_USE;

/* Who waits for a question and came after it was shown waits for one of its own. Negative: the log failed. */
int queue_split_late(struct queue *queue) MUST_USE;

/* Who answers. */
struct queue_answerer {
	const char *via;                 /* "control", "prompt", "desktop", "webhook" */
	uid_t uid;
	pid_t pid;                       /* 0: none */
};

/*
 * Answers a question. 0: it counts, and *ret_grant is the grant that came of it, or 0; 1: it does not, *err says why;
 * negative: the log failed, and nobody was let through.
 */
int queue_answer(struct queue *queue, const struct asking_reply *reply, const struct queue_answerer *by,
		  uint32_t *ret_grant, struct err *err) MUST_USE;

/* 0: taken back; 1: there is none (*err); negative: the log failed. */
int queue_revoke(struct queue *queue, uint32_t number, const struct queue_answerer *by, struct err *err) MUST_USE;

/* Questions that wait for an answer, or are listed without one. */
size_t queue_count_open(const struct queue *queue);

/* Grows with every change of a question. */
uint64_t queue_generation(const struct queue *queue);

/*
 * Adds to a frame the generation that it tells and what changed after that one, oldest first, as far as it fits.
 * is_shown: a person sees them. Returns the generation told.
 */
uint64_t queue_put_questions(const struct queue *queue, uint64_t after, bool is_shown, struct buf *out);

/* Adds to a frame the grants that hold and have a higher number than `after`, lowest first, as far as it fits. */
void queue_put_grants(const struct queue *queue, uint32_t after, struct buf *out);

/* How many questions nobody heard, or answered in time. */
uint64_t queue_unanswered(const struct queue *queue);

/* The members of the report's "asked" object. */
void queue_to_json(const struct queue *queue, struct json *json);

/* Its state is a struct queue. Who waits when it is done is not told. */
extern const struct module queue_module;
