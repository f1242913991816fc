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
#include "wire/judge.h"

struct box;
struct external;

struct external_request {
	struct action action;        /* borrowed during the call */
	enum verdict verdict;        /* of the rules: ASK or more */
	const char *rule;
	pid_t pid;                   /* host pid of the caller */
	const char *program, *cwd;   /* of the caller; each may be NULL */
	const char *findings;        /* a JSON array of what the rules for commands found; NULL: none looked */
};

/* The reason is borrowed until the next call into this module. */
struct external_opinion {
	enum judge_verdict verdict;
	const char *reason;
};

struct external_waiter {
	/* Negative: the log failed, and the sandbox ends. */
	int (*done)(void *context, uint64_t token, const struct external_opinion *opinion);
	void *context;
	uint64_t token;
};

/* Whether the policy wants an opinion on what the rules gave this verdict. */
bool verify_external_wants(const struct box *box, enum verdict verdict);

/*
 * 1: waiter->done() will be called exactly once; 0: *ret_opinion is what there is (never ALLOW: there was nobody, or
 * no room); negative: the log failed.
 */
int verify_external_begin(struct box *box, const struct external_request *request,
			  const struct external_waiter *waiter, struct external_opinion *ret_opinion) MUST_USE;

/* The caller is gone: done() is not called any more. */
void verify_external_forget(struct box *box, const struct external_waiter *waiter);

/* What is due, and how long nothing is (-1: for ever). Negative: the log failed. */
int verify_external_check(struct box *box, uint64_t now_ns) MUST_USE;
int verify_external_timeout_ms(const struct box *box, uint64_t now_ns);

/* The report's "external" object. */
struct json;
void verify_external_to_json(const struct box *box, struct json *json);

void verify_external_close(struct box *box);
void verify_external_free(struct box *box);
