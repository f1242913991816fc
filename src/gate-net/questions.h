/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Connections that the policy asks a person about: each waits in the gate, where it holds up no other, until the
 * question is answered. Run by atoll-box.
 */

#include <stdbool.h>

#include "approve/queue.h"
#include "wire/gate.h"

struct gate_pending;
struct net_gate;

/* What became of a question about a request. */
struct gate_answered {
	enum verdict verdict;
	char rule[64], reason[160], hint[128];
};

/* Requests that are asked about, or under way since they were: more are refused. */
enum { GATE_REQUESTS_ASKED_MAX = 2048 };

/* Those that wait; at most QUEUE_WAITERS_MAX. */
struct gate_questions {
	struct gate_pending *first;  /* owned */
	bool is_on;                  /* the gate was told so: GATE_ASKING */
	struct gate_pending *requests; /* owned: those that wait, and those that were answered and are not over */
	size_t request_count;
};

/*
 * Asks about a connection that decision asks about. 1: it waits, and is judged by gate_log_answered() later; 0: *out
 * is the answer; negative: the log failed.
 */
int gate_questions_begin(struct net_gate *gate, const struct gate_open *open, const struct decision *decision,
		      struct queue_outcome *out) MUST_USE;

/* The same about the address that a connection leads to; gate_log_resolved_answered() hears the answer. */
int gate_questions_resolved(struct net_gate *gate, const struct gate_resolved *resolved,
			    const struct decision *decision, struct queue_outcome *out) MUST_USE;

/* The same for what cannot wait: a name that was looked up (port 0), an address. It stays listed. */
int gate_questions_list(struct net_gate *gate, const struct gate_open *open, const struct decision *decision,
		     struct queue_outcome *out) MUST_USE;

/* Whether it makes sense to let it come to a question: somebody hears, or something was granted. */
bool gate_questions_is_on(struct net_gate *gate);

/*
 * Asks about a request; gate_log_asked() hears the answer, at once or later. Its answer is kept until it is over. A
 * number that is used already is -EBADMSG; else negative: the log failed.
 */
int gate_questions_request(struct net_gate *gate, const struct gate_ask *ask, const struct decision *decision) MUST_USE;

/* What was answered about this request, which is over now: it is forgotten. False: nobody was asked about it. */
bool gate_questions_take(struct net_gate *gate, uint32_t id, struct gate_answered *ret_answered);

/* Nobody waits for the answer, or needs it, any more. */
void gate_questions_forget(struct net_gate *gate, uint32_t id);

/* The client of a connection has said all that it will: it is forgotten as soon as its program is gone. */
void gate_questions_left(struct net_gate *gate, uint32_t id);

/* There is no gate any more: nobody waits. */
void gate_questions_done(struct net_gate *gate);
