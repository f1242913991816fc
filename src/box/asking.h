/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Questions to people, and what was granted: one queue for every gate of the box. A gate whose policy_decide() says
 * ASK comes here with the action and is told at once, or later through its waiter. What answers is the control socket
 * (control-asking.c), a prompt or a notice; who asks does not know. Run by atoll-box.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "policy/grants.h"
#include "wire/asking.h"

struct box;
struct buf;

enum {
	ASKING_QUESTIONS_MAX = 1024,     /* waiting and listed together; the oldest that nobody waits for goes first */
	ASKING_WAITERS_MAX = 4096,       /* of all questions */
	ASKING_GRANTS_MAX = 512,         /* refusals that are remembered too */
	ASKING_TEXT_MAX = 8 << 10,       /* bytes of one question: what is longer, nobody can judge */
	ASKING_WORDS_MAX = 1 << 10,      /* of the agent's reason; the rest is cut */
	ASKING_BURST = 100,              /* questions at once; one more every ASKING_REFILL_MS */
	ASKING_REFILL_MS = 1000,
	ASKING_LISTED_MS = 600000,       /* how long one stays listed that nobody waits for */
	ASKING_NEXT_MS = 600000,         /* how long ASKING_ONCE holds for the next time */
	ASKING_LOOK_MS = 250,            /* how often those who wait are looked for */
};

struct asking_request {
	struct action action;            /* borrowed during the call */
	struct decision decision;        /* that asks: rule and reason; borrowed */
	pid_t pid;                       /* host pid of the caller, 0: none */
	struct grant_actor actor;        /* the caller's program and, for a command, its directory; each may be NULL */
	uint32_t flags;                  /* GRANT_BELOW: a directory and all below it is asked for; GRANT_OUTSIDE */
	const char *words;               /* the agent's own reason, or NULL; hostile */
	uint64_t wait_max_ms;            /* 0: what the policy says */
};

enum asking_verdict {
	ASKING_DENIED,                   /* somebody said no, now or before */
	ASKING_ALLOWED,
	ASKING_UNANSWERED,               /* nobody can hear of it, or nobody answered in time */
	ASKING_TOO_MANY,                 /* or too long to be shown */
};

/* All text is borrowed: until the next call into this module, by a waiter until it returns. */
struct asking_outcome {
	enum asking_verdict verdict;
	struct rule_origin rule;         /* "ask.grant[3]", or the rule that asks */
	const char *reason, *hint;       /* never NULL */
	uint32_t grant;                  /* that was used; 0: none */
	uint32_t question;               /* 0: none was made */
	uint64_t until_ns;               /* ASKING_ALLOWED: CLOCK_MONOTONIC; UINT64_MAX: nothing ends it but a person */
};

struct asking_waiter {
	/* Negative: the log failed, and the sandbox ends. May begin and forget others. */
	int (*done)(void *context, uint64_t token, const struct asking_outcome *outcome);
	/*
	 * Asked every ASKING_LOOK_MS: true where who waits has died, and then done() is not called any more. NULL:
	 * asking_forget() says so.
	 */
	bool (*is_gone)(void *context, uint64_t token);
	void *context;
	uint64_t token;
};

struct asking_grant_request {
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
int asking_begin(struct box *box, const struct asking_request *request, const struct asking_waiter *waiter,
		 struct asking_outcome *ret_outcome) MUST_USE;

/*
 * Whether a grant covers it, or a refusal that is remembered, without asking anybody: 1 and *ret_outcome; 0: neither.
 * is_used: what counts uses counts this one. Negative: the log failed.
 */
int asking_find(struct box *box, const struct asking_request *request, bool is_used,
		struct asking_outcome *ret_outcome) MUST_USE;

/* The caller is gone: done() is not called any more. A question that nobody waits for stays listed. */
void asking_forget(struct box *box, const struct asking_waiter *waiter);

/* Something that needs no question (a token). -ENOSPC: too many; another negative: the log failed. */
int asking_grant_add(struct box *box, const struct asking_grant_request *request, uint32_t *ret_number) MUST_USE;

/*
 * What was allowed (outcome) and lies outside of the sandbox's view comes into it, and stays for as long as
 * the grant that allowed it. What was allowed once, or so many times, cannot be counted there: it has a grant
 * of its own, which people see and can take back, and goes after ASKING_NEXT_MS. runtime_mount_show() was
 * called before. 0; 1: it cannot be brought in, *err says why; negative: the log failed.
 */
int asking_bring_in(struct box *box, const struct action *action, const struct asking_outcome *outcome,
		    struct err *err) MUST_USE;

/* Whether somebody waits to hear about this path. */
bool asking_waits_for_path(const struct box *box, const char *path);

/* Whether anything of the network was granted that still holds. */
bool asking_has_network_grants(const struct box *box);

/* Whether anybody would hear of a question now. */
bool asking_is_heard(struct box *box);

/*
 * The same for who asks at every turn of the loop: who follows all sandboxes (listeners.h), for whom a look costs as
 * much as all else of a connection, is looked for every now and then.
 */
bool asking_was_heard(struct box *box);

/* Nobody can hear any more: what waits is refused now, and stays listed. Negative: the log failed. */
int asking_hush(struct box *box) MUST_USE;

/* Nothing runs inside any more: the same, of whatever still waits. */
int asking_end(struct box *box) MUST_USE;

/*
 * Who waits is gone before anybody answered: 1 and *ret_outcome, by which it was refused; 0: nobody waits so. Before
 * asking_forget(), or from is_gone(). Negative: the log failed.
 */
int asking_left(struct box *box, const struct asking_waiter *waiter, struct asking_outcome *ret_outcome) MUST_USE;

/* Who waits for a question and came after it was shown waits for one of its own. Negative: the log failed. */
int asking_part_late(struct box *box) MUST_USE;

/* What is due; and how long nothing is (-1: for ever). Negative: the log failed. */
int asking_check(struct box *box, uint64_t now_ns) MUST_USE;
int asking_timeout_ms(const struct box *box, uint64_t now_ns);

/* Who answers. */
struct asking_answerer {
	const char *via;                 /* "control", "prompt", "desktop", "webhook" */
	uid_t uid;
	pid_t pid;                       /* 0: none */
};

/*
 * Answers a question. 0: it counts, and *ret_grant is the grant that came of it, or 0; 1: it does not, *err says why;
 * negative: the log failed, and nobody was let through.
 */
int asking_answer(struct box *box, const struct asking_reply *reply, const struct asking_answerer *by,
		  uint32_t *ret_grant, struct err *err) MUST_USE;

/* 0: taken back; 1: there is none (*err); negative: the log failed. */
int asking_revoke(struct box *box, uint32_t number, const struct asking_answerer *by, struct err *err) MUST_USE;

/* Questions that wait for an answer, or are listed without one. */
size_t asking_count_open(const struct box *box);

/* Grows with every change of a question. */
uint64_t asking_generation(const struct box *box);

/*
 * Adds to a frame the generation that it tells and what changed after that one, oldest first, as far as it fits.
 * is_shown: a person sees them. Returns the generation told.
 */
uint64_t asking_put_questions(const struct box *box, uint64_t after, bool is_shown, struct buf *out);

/* The same for grants, by number. */
void asking_put_grants(const struct box *box, uint32_t after, struct buf *out);

/* How many questions nobody heard, or answered in time. */
uint64_t asking_unanswered(const struct box *box);

/* The report's "asked" object. */
struct json;
void asking_to_json(const struct box *box, struct json *json);

/* Forgets everything; nobody is told. */
void asking_done(struct box *box);
