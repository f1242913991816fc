/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A trial in flight: its sessions, what was seen of it, and the programs that look. For dry-run.c and dry-run-show.c
 * only; the order of things is dry-run.c's.
 */

#include <limits.h>

#include "client/staged.h"
#include "learn/effects.h"
#include "prog/atoll/run/dry-run.h"
#include "prog/atoll/verb/dry-run-record.h"
#include "session/record.h"
#include "stage/change/difference.h"

enum dry_run_done {
	DRY_RUN_UNDECIDED,           /* nobody answered: it can be accepted later */
	DRY_RUN_REFUSED,
	DRY_RUN_TAKEN_OVER,          /* what was tried is what is there now */
	DRY_RUN_AGAIN,               /* it was done again, and came out as it was shown, or was taken all the same */
	DRY_RUN_DIFFERS,             /* it was done again, came out otherwise, and waits for a person */
	DRY_RUN_BACK,                /* so it was in a session that ran, which was stopped and is what it was before */
	DRY_RUN_DONE_COUNT,
};

struct dry_run {
	const struct dry_run_options *given;
	char state[PATH_MAX], started_in[PATH_MAX];
	struct dry_run_record record;
	char **exact_env;            /* borrowed: all variables of the command; NULL: as `atoll run` has it */
	struct session_record origin, trial, real;
	bool has_origin, has_trial, has_real;
	char base[STAGE_SNAPSHOT_NAME_SIZE];     /* of the origin: what it is done again upon */
	char real_snapshot[STAGE_SNAPSHOT_NAME_SIZE]; /* of the origin, where it ran on in that; "" */
	int status;                              /* of the command, as it ran last */
	struct stage_difference difference;      /* what the trial changed */
	struct stage_difference real_difference; /* where it came out otherwise */
	struct effects_numbers effects;
	int changes_fd, effects_fd;              /* owned: that for people, or as JSON */
	bool differs;                            /* done again, it came out otherwise */
	int difference_fd;                       /* owned: how */
	bool is_refused;                         /* somebody said no */
	bool is_cut;                             /* the trial was ended from outside, and shows nothing */
	enum dry_run_done done;
	struct staged_log telling;
};

/* Nothing done yet; given is borrowed. NULL with *err. Ended by dry_run_free(). */
struct dry_run *dry_run_new(const struct dry_run_options *given, struct err *err);
void dry_run_free(struct dry_run **dry);

/* For the box: tries what stands still, and looks at what came of it. */
struct trial_begin;
int dry_run_try(struct dry_run *dry, const struct trial_begin *begin, struct err *err) MUST_USE;

/* The trial is dropped. */
int dry_run_discard(const struct dry_run *dry, struct err *err) MUST_USE;

/* One run of the command. */
struct dry_run_go {
	uint32_t flags;              /* REQUEST_* */
	const char *prefix;          /* of the session's name */
	bool is_mute;                /* what it prints goes to stderr, because stdout is for JSON */
	bool is_trial;               /* it gets nothing from a stdin that could not be read again */
};

/*
 * Runs it in a session of its own and waits: the exit status, and its record. -ENOENT with *err where none came of it.
 */
int dry_run_go(struct dry_run *dry, const struct dry_run_go *go, struct session_record *ret_record,
	       struct err *err) MUST_USE;

/* Runs it in the origin, which lives: the exit status. */
int dry_run_exec(struct dry_run *dry, struct err *err) MUST_USE;

/* Stops the origin, and makes what it was before (base) its state. */
int dry_run_go_back(struct dry_run *dry, struct err *err) MUST_USE;

/* Fills difference, effects and the texts of both. */
int dry_run_look(struct dry_run *dry, struct err *err) MUST_USE;

/* Fills differs and its text: this session (in this snapshot; NULL: as it is) against the trial. */
int dry_run_compare(struct dry_run *dry, const char *session, const char *snapshot, struct err *err) MUST_USE;

/* In the trial's log: that it is done for real and how, before it is; and how that ended (r, which is returned). */
int dry_run_log(struct dry_run *dry, const char *how, struct err *err) MUST_USE;
int dry_run_logged(struct dry_run *dry, int r, struct err *err) MUST_USE;

/* Pure: nothing outside was wanted that the trial did not have, so that it would come out the same for real. */
static inline bool dry_run_reached_nobody(const struct dry_run *dry)
{
	const struct effects_numbers *effects = &dry->effects;

	return !dry->record.reads_input && !effects->of[EFFECTS_OUTGOING] && !effects->of[EFFECTS_ASKED] &&
	       !effects->unreadable && effects->has_end;
}

/* Pure: nothing that a person should look at first. */
static inline bool dry_run_is_clean(const struct dry_run *dry)
{
	return dry->status == 0 && dry_run_reached_nobody(dry) && !dry->effects.of[EFFECTS_REFUSED] &&
	       !dry->effects.of[EFFECTS_FOUND] && !dry->difference.flagged && !dry->difference.hidden &&
	       !dry->difference.deleted && !dry->record.writes_host;
}
