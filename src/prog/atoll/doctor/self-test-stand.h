/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A sandbox of the doctor's, and all that is made for it: while there is one, what would end us ends it and removes
 * that first.
 */

#include <limits.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "client/dirs.h"
#include "prog/atoll/doctor/self-test-targets.h"

struct run_setup;

struct stand {
	char directory[64]; /* the project is project/ in it */
	char project[96], policy[96];
	struct dirs dirs;
	char secret[PATH_MAX]; /* a file in the state directory, which no sandbox sees */
	struct self_test_targets targets;
};

/* Makes its directories; to be closed also where it failed. Negative with *err. */
int stand_open(struct stand *stand, struct err *err) MUST_USE;

/* Removes what there is of it. Does not return where a signal came meanwhile that ends us. */
void stand_close(struct stand *stand);

/*
 * Runs command in a sandbox; what it writes to captured (1 or 2) goes to out. The wait status, or -errno with *err.
 */
int stand_run(const struct run_setup *setup, char **command, int captured, struct buf *out, struct err *err) MUST_USE;

/* What a child (negative: there is none, and why) writes into the pipe, which is closed. 0 and *ret_status; -errno. */
int stand_hear(pid_t pid, const int ends[2], struct buf *out, int *ret_status) MUST_USE;
