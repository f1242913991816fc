/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Programs that the policy wants tried before they start (`verify:`, the action dry-run): while the caller stands still
 * at its exec, the same command runs in a trial, a fork of this session as it is at that moment, in which nothing goes
 * out. What came of it is written down; a clean one lets the program start, anything else is a question to a person.
 * When what was let through ends, it is compared with what was shown. The work is done by an `atoll dry-run --held`
 * beside the box (wire/trial.h). Run by atoll-box.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "gate-exec/verifier.h"

struct exec_dry_runs;
struct run;
struct staging;
struct watch_exec;

enum {
	EXEC_DRY_RUNS_MAX = 4,         /* at one time; what comes beyond is asked about untried */
	EXEC_DRY_RUN_MS = 120000,      /* for a trial; beyond it is asked about */
	EXEC_DRY_RUN_KEPT_MS = 10000,  /* for a caller that makes its call again after a freeze */
};

/* Who hears that what a trial shows is known. Negative: the log failed. */
struct exec_dry_run_owner {
	int (*done)(void *context, uint64_t token);
	void *context;
};

/* What is given is borrowed for its life. NULL: out of memory. The other functions do nothing where trials is NULL. */
struct exec_dry_runs *exec_dry_runs_new(struct run *run, const struct staging *staging,
				    const struct exec_dry_run_owner *owner);

/*
 * outcome says dry-run when this is called. 0: it says now what the trial leads to (VERIFY_NOTE, or VERIFY_ASK with the
 * reason), and *ret_trial is for the two below, 0: none was made; 1: the owner's done(token) will be called;
 * negative: the log failed. exec is borrowed during the call; its caller stands still.
 */
int exec_dry_run_ask(struct exec_dry_runs *trials, const struct watch_exec *exec, uint64_t token,
		   struct verify_outcome *outcome,
		   uint32_t *ret_trial) MUST_USE;

/* For the owner's done(): what the trial that is waited for under this token leads to. False: there is none. */
bool exec_dry_run_find(struct exec_dry_runs *trials, uint64_t token, struct verify_outcome *outcome,
		     uint32_t *ret_trial) MUST_USE;

/* Who waits under this token was sent away for a freeze, and makes the same call again. */
void exec_dry_run_release(struct exec_dry_runs *trials, uint64_t token);

/* Nobody waits under this token any more: what was tried for it is dropped. */
void exec_dry_run_forget(struct exec_dry_runs *trials, uint64_t token);

/* What became of the program: it starts in the process that waited, or it does not. */
void exec_dry_run_decided(struct exec_dry_runs *trials, uint32_t trial, bool is_allowed);

/* Ends what is tried, which takes its traces along by itself, and frees trials; it may be NULL. */
void exec_dry_run_done(struct exec_dry_runs *trials);
