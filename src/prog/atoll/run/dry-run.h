/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * `atoll dry-run`: a command is run in a trial, a session of its own in which nothing goes out and nothing reaches the
 * host; what came of it is shown; and it is done for real when a person or a rule says so. Where the trial reached
 * nobody its own layer is taken over, so that what was shown is what is done. Else the command runs again, and what it
 * did then is compared with what was shown.
 */

#include <stdbool.h>

#include "base/err.h"
#include "client/run-setup.h"

struct dry_run_options {
	struct run_setup setup;     /* of the trial; flags and origin are set here */
	const char *session;            /* whose state it begins with; NULL: the host's */
	char **command;                 /* NULL-terminated */
	bool yes;                       /* for real, whatever was seen */
	bool if_clean;                  /* for real where nothing was seen that a person should look at */
	bool json, quiet;
};

/*
 * The exit status: of the command when it was done for real; DRY_RUN_NOT_DONE when nobody said so, or when it was done
 * and came out otherwise than was shown. Negative with *err.
 */
enum { DRY_RUN_NOT_DONE = 1 };

int dry_run(const struct dry_run_options *given, struct err *err) MUST_USE;

/* The whole work of EXEC_TRIAL_NAME (gate-exec/dry-run.h): its exit status. */
int dry_run_held_main(void) MUST_USE;

/* Does for real what the trial of this id or name showed; as dry_run(). */
int dry_run_accept(const char *trial, const struct dry_run_options *given, struct err *err) MUST_USE;
