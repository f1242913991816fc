/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a trial was asked to do, kept in its session (`trial.bin`, doc/format/stage.md), so that it can be done for real
 * later: `atoll dry-run --accept`. Written and read by atoll alone, as the user whose sessions they are, in the state
 * directory, which no sandbox sees.
 */

#include <limits.h>
#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/options.h"
#include "os/clock.h"
#include "stage/layer/chain.h"
#include "stage/snapshot/snapshot.h"

/* Strings are borrowed from the command line, or from `bytes`. */
struct dry_run_record {
	char origin[SESSION_ID_SIZE];        /* whose state it began with; "": that of the host */
	char snapshot[STAGE_SNAPSHOT_NAME_SIZE]; /* that state, in the origin */
	char shown[STAGE_SNAPSHOT_NAME_SIZE]; /* what it left, in the trial; "": nothing, or it can have no name */
	const char *policy, *trust, *project, *task, *agent, *confidence; /* as for `atoll run`; or NULL */
	const char *cwd;                     /* -C; or NULL */
	const char *started_in;              /* the caller's working directory; absolute */
	struct option_list env;
	char **command;                      /* with argv[0]; NULL-terminated */
	bool writes_host;                    /* for real it writes straight to the host, what in the trial was staged */
	bool reads_input;                    /* it read from a stdin that could not be given to the trial */
	char *bytes;                         /* owned */
};

/* Writes it into the session's directory. Negative with *err. */
int dry_run_record_store(const char *state, const char *session, const struct dry_run_record *record,
			 struct err *err) MUST_USE;

/* -ENOENT with *err: the session is no trial, or what it tried was done or dropped already. */
int dry_run_record_load(const char *state, const char *session, struct dry_run_record *ret_record,
			struct err *err) MUST_USE;
/*
 * Makes the trial the caller's own, so that what it tried is done or dropped once, whoever else wants to: -EALREADY
 * with *err where somebody else did. A release takes that back, where nothing came of it.
 */
int dry_run_record_claim(const char *state, const char *session, struct err *err) MUST_USE;
int dry_run_record_release(const char *state, const char *session, struct err *err) MUST_USE;

/* Frees the words of the command and what it borrows with them; a zeroed one is fine. */
void dry_run_record_done(struct dry_run_record *record);
