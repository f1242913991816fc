/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Commands are judged by what they would do, before they run: atoll-verify, one beside the sandbox and started by the
 * first command, is asked, and the policy says what its findings lead to. When it is slow, dies or talks nonsense,
 * the command could not be judged. A guard rail for honest agents; it decides nothing itself. Run by atoll-box.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "policy/policy.h"
#include "wire/verify.h"

struct run;
struct verifier;

/* What the findings lead to, and the one that led to it. VERIFY_OFF: nothing was found, or nothing is looked at. */
struct verify_outcome {
	enum verify_action action;
	bool is_unknown;             /* it could not be judged: nothing was found that speaks against who started it */
	char id[VERIFY_TEXT_SIZE], reason[VERIFY_TEXT_SIZE], hint[VERIFY_TEXT_SIZE];
};

/* What ran though something bad was found in it. */
struct verifier_noted {
	uint64_t count;
	char first[96];              /* the rule of the first one */
};

/* Who hears of outcomes. Negative: the log failed. */
struct verifier_owner {
	int (*done)(void *context, uint64_t token, const struct verify_outcome *outcome);
	void *context;
};
struct watch_exec;

enum {
	VERIFY_WAITING_MAX = 64,     /* commands that are judged at one time; the next one could not be judged */
	/*
	 * For one of them, by the wall's clock. What a text takes is bounded by atoll-verify itself, by steps and by
	 * what it computes (VERIFY_TIME_MS); on a busy machine that takes many times as long, and is no failure.
	 */
	VERIFY_WAIT_MS = 30000,
	VERIFY_STILL_MS = 6000,      /* who computes nothing at all for so long, while somebody waits, hangs */
	VERIFY_START_MS = 20000,     /* before that, to read its rules: once for each set, seconds on a slow machine */
	VERIFY_FALLS_MAX = 8,        /* of the program; then nothing is judged any more */
};

/*
 * Looks up what is known of the rules, before anything runs inside: they are the ones that the sandbox is judged by for
 * its whole life. Nothing where the policy has nothing looked at. 0 also where nothing is known: then the first command
 * starts what judges it, which reads them. *ret_gate stays NULL where nothing is looked at; else it is owned by the
 * caller, for verifier_free(). -ENOMEM.
 */
int verifier_prepare(struct verifier **ret_gate, struct run *run, const struct verifier_owner *owner) MUST_USE;

/* Borrowed; gate may be NULL, and the answer then is. */
const struct verifier_noted *verifier_noted(const struct verifier *gate);

/*
 * 0: *ret_outcome says it, or where *ret_errnum is set there is nothing to look at: the exec fails with it, whatever is
 * there a moment later; 1: the owner's done(token, …) will be called; negative: the log failed. exec is borrowed
 * during the call; its caller stands still. After verifier_prepare(), of a policy that has it looked at.
 */
int verifier_ask(struct verifier *gate, const struct watch_exec *exec, uint64_t token,
		    struct verify_outcome *ret_outcome,
		    int *ret_errnum)
	MUST_USE;

/* Nobody waits for it any more. */
void verifier_forget(struct verifier *gate, uint64_t token);

/* Ends what judges. Nothing is asked afterwards. */
void verifier_close(struct verifier *gate);

/* Frees it and who still waits, unheard; after verifier_close(). gate may be NULL. */
void verifier_free(struct verifier *gate);
