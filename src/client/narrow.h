/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * `atoll run --narrow`: before the run the verifier of the policy (verify.external) is asked what the task does not
 * need, and the run has the policy without it. What it proposes is hostile: it can only take away, which atoll-policy
 * sees to; whatever is no such proposal leaves the person who asked for one without a run, unless they said otherwise.
 */

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "client/compiled.h"
#include "client/dirs.h"
#include "session/run-request.h"
#include "wire/judge.h"

/* A proposal as a person is shown it; everything is borrowed. */
struct narrow_shown {
	const char *task, *reason;   /* the reason may be "" */
	const char *text;            /* of the proposal */
	const char *brief, *whole;   /* what it takes away, in lines */
};

enum narrow_answer { NARROW_NO, NARROW_YES, NARROW_QUIT };

/* How a person is reached. */
struct narrow_prompt {
	bool (*can_ask)(void);
	void (*show)(const struct narrow_shown *shown);
	/* Asks until there is an answer; NARROW_QUIT also where the person goes away. Negative with *err. */
	int (*ask)(const struct narrow_shown *shown, enum narrow_answer *ret_answer, struct err *err);
};

struct narrow_request {
	enum narrow_mode mode;       /* not NARROW_OFF */
	const char *task, *session, *init_path;
	char **argv;                 /* the command; may be empty */
	const struct dirs *dirs;
	const struct narrow_prompt *prompt;   /* NULL: nobody can be asked or told */
	void (*notice)(const char *text);     /* a line for people, with its newline; NULL: nobody is told */
};

struct narrowed {
	struct run_narrowing told;   /* borrows from here */
	char *text;                  /* owned */
	char reason[JUDGE_REASON_MAX];
};

/* Frees the text of the proposal; a zeroed one is fine. */
void narrowed_done(struct narrowed *narrowed);

/*
 * compiled is the policy of the run, made by origin, and is the narrowed one afterwards, or as it was: *ret_narrowed
 * says which, and is for narrowed_done() in any case. 0; 1: the user was told why nothing runs; negative with *err: the
 * same.
 */
int narrow_run(const struct narrow_request *request, const struct compiled_request *origin, struct compiled *compiled,
	       struct narrowed *ret_narrowed, struct err *err) MUST_USE;
