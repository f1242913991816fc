/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A second opinion on an action that the rules do not deny (verify.external): an atoll-judge brings it before the
 * verifier of the policy. The opinion can only tighten; whatever is not clear, late or malformed is for a person to
 * decide. After repeated denials the agent is stopped, and that is said. Run by atoll-box.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "policy/decide.h"
#include "supervise/module.h"
#include "wire/judge.h"

struct json;
struct queue;
struct reviewer_state;
struct run;

struct reviewer {
	struct run *run;                     /* both borrowed */
	struct queue *queue;                 /* where a person is asked whether a stopped agent goes on */
	struct reviewer_state *state;        /* owned; NULL: nobody was asked yet */
};

struct reviewer_request {
	struct action action;        /* borrowed during the call */
	enum verdict verdict;        /* of the rules: ASK or more */
	const char *rule;
	pid_t pid;                   /* host pid of the caller */
	const char *program, *cwd;   /* of the caller; each may be NULL */
	const char *findings;        /* a JSON array of what the rules for commands found; NULL: none looked */
};

/* The reason is borrowed until the next call into this module. */
struct reviewer_opinion {
	enum judge_verdict verdict;
	const char *reason;
};

struct reviewer_waiter {
	/* Negative: the log failed, and the sandbox ends. */
	int (*done)(void *context, uint64_t token, const struct reviewer_opinion *opinion);
	void *context;
	uint64_t token;
};

/* Whether the policy wants an opinion on what the rules gave this verdict. */
bool reviewer_wants(const struct reviewer *reviewer, enum verdict verdict);

/*
 * 1: waiter->done() will be called exactly once; 0: *ret_opinion is what there is (never ALLOW: there was nobody, or
 * no room); negative: the log failed.
 */
int reviewer_begin(struct reviewer *reviewer, const struct reviewer_request *request,
			  const struct reviewer_waiter *waiter, struct reviewer_opinion *ret_opinion) MUST_USE;

/* The caller is gone: done() is not called any more. */
void reviewer_forget(struct reviewer *reviewer, const struct reviewer_waiter *waiter);

/* The report's "external" object. */
void reviewer_to_json(const struct reviewer *reviewer, struct json *json);

/* Ends the program; nobody is told of what it was asked. */
void reviewer_close(struct reviewer *reviewer);

/* Its state is a struct reviewer: what nobody answered in time is not clear. */
extern const struct module reviewer_module;
