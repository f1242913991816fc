/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/run/dry-run.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "client/dirs.h"
#include "client/staged.h"
#include "os/clock.h"
#include "os/fd.h"
#include "prog/atoll/run/dry-run-show.h"
#include "prog/atoll/run/dry-run-state.h"
#include "prog/atoll/verb/dry-run-end.h"
#include "session/directories.h"
#include "wire/trial.h"

/* ---- what it begins with ---- */

static int refuse_unstaged(const struct session_record *origin, struct err *err)
{
	err_set(err, ERR_STATE, ENOENT, "dry-run", "session %s has no staged changes that a trial could begin "
						   "with", origin->id);
	err_hint(err, "leave the id out, and name its policy (-p): the trial then begins with the files of the host");
	return -ENOENT;
}

/* The state of now gets a name in the session, which a running one stands still for. */
static int name_state(const struct dry_run *dry, const struct session_record *session,
		      const struct staged_snapshot *wanted, char name[STAGE_SNAPSHOT_NAME_SIZE], struct err *err)
{
	int r = staged_snapshot(dry->state, session, wanted, name, err);

	/* It has said why. */
	return r > 0 ? err_set(err, ERR_STATE, EIO, "dry-run", "the state of session %s could not be "
							       "named", session->id) : r;
}

/* A session may be tried upon for as long as it likes. */
static int thin_out(const struct dry_run *dry, struct err *err)
{
	cleanup_stage_lock struct stage_lock lock = STAGE_LOCK_NONE;
	int r = stage_lock_open(dry->state, dry->origin.id, &lock, err);

	if (r == 0)
		r = stage_snapshot_thin(&lock, "dry-run-", STAGE_AUTO_KEPT, err);
	return r < 0 ? r : stage_snapshot_thin(&lock, "done-", STAGE_AUTO_KEPT, err);
}

static int name_origin(const struct dry_run *dry, const char *message, char name[STAGE_SNAPSHOT_NAME_SIZE],
		       struct err *err)
{
	const struct staged_snapshot wanted = { .prefix = "dry-run-", .message = message };

	int r = name_state(dry, &dry->origin, &wanted, name, err);

	return r == 0 ? thin_out(dry, err) : r;
}

static int take_origin(struct dry_run *dry, struct err *err)
{
	int r = session_find(dry->state, NULL, dry->given->session, NULL, &dry->origin, err);

	dry->has_origin = r == 0;
	if (r == 0 && !dry->origin.is_staged)
		r = refuse_unstaged(&dry->origin, err);
	if (r == 0)
		r = name_origin(dry, "before a trial", dry->record.snapshot, err);
	if (r == 0)
		r = str_copy(dry->record.origin, sizeof dry->record.origin, dry->origin.id);
	return r == 0 ? str_copy(dry->base, sizeof dry->base, dry->record.snapshot) : r;
}

/* ---- the trial ---- */

/* What is asked for, as it is kept with the trial. */
static void set_record(struct dry_run *dry)
{
	struct dry_run_record *record = &dry->record;
	const struct run_setup *setup = &dry->given->setup;

	record->policy = setup->policy;
	record->trust = setup->trust;
	record->project = setup->project;
	record->task = setup->task;
	record->agent = setup->agent;
	record->confidence = setup->confidence;
	record->cwd = setup->cwd;
	record->env = setup->env;
	record->command = dry->given->command;
	record->started_in = dry->started_in;
}

/* What it left gets a name: that is looked at, and that is what is taken over, or nothing. */
static int name_shown(struct dry_run *dry, struct err *err)
{
	const struct staged_snapshot wanted = { .prefix = "tried-", .message = "what the trial left" };
	struct err why = { 0 };
	int r = dry->trial.is_staged ? name_state(dry, &dry->trial, &wanted, dry->record.shown, &why) : 0;

	/* Of layers of fuse-overlayfs there are no snapshots: it can be shown, and done again. */
	if (r == -EOPNOTSUPP) {
		*dry->record.shown = 0;
		return 0;
	}
	if (r < 0)
		*err = why;
	return r;
}

static int try(struct dry_run *dry, struct err *err)
{
	const struct dry_run_go trial = { .flags = REQUEST_TRIAL | REQUEST_QUIET | REQUEST_NO_TTY,
					  .prefix = "trial-", .is_mute = dry->given->json, .is_trial = true };
	int r = dry_run_go(dry, &trial, &dry->trial, err);

	if (r < 0)
		return r;
	dry->status = r;
	dry->has_trial = true;
	dry->record.writes_host = dry->trial.writes_host;
	r = name_shown(dry, err);
	return r == 0 ? dry_run_record_store(dry->state, dry->trial.id, &dry->record, err) : r;
}

/* ---- for real ---- */

static int discard(const struct dry_run *dry, const struct session_record *session, struct err *err)
{
	cleanup_words struct words words = { 0 };

	if (!session->is_staged)
		return 0;
	staged_words(&words, "discard", dry->state, session->id);
	words_add(&words, "--quiet");
	return staged_run(&words, err);
}

/* It is what any other session is from now on: reviewed, applied, dropped. */
static int keep_trial(struct dry_run *dry, struct err *err)
{
	cleanup_fd int dir_fd = FD_NONE;
	char path[PATH_MAX];
	int r = session_path(dry->state, dry->trial.id, "", path, sizeof path);

	if (r == 0)
		r = dir_fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (r >= 0) {
		dry->trial.is_trial = false;
		r = session_store(dir_fd, &dry->trial);
	}
	return r < 0 ? err_set(err, ERR_STATE, -r, "dry-run", "the record of session %s cannot be written: %s",
			       dry->trial.id, strerror(-r))
		     : 0;
}

/* Holds a session whose state must be what this snapshot of it says, with nothing running in it. */
static int hold_unchanged(const struct dry_run *dry, const char *session, const char *snapshot,
			  struct stage_lock *ret_hold, struct err *err)
{
	int r = stage_lock_open(dry->state, session, ret_hold, err);

	if (r == 0)
		r = stage_lock_need_idle(ret_hold, "taking over what was tried", err);
	if (r == 0)
		r = stage_snapshot_is_current(ret_hold, snapshot, err);
	if (r == 0) {
		err_set(err, ERR_STATE, EBUSY, "dry-run", "session %s changed meanwhile; nothing was done", session);
		return -EBUSY;
	}
	return r < 0 ? r : 0;
}

/* The layers of `from`, which was forked from the origin, become the state of the origin. */
static int take_over(struct dry_run *dry, const struct session_record *from, const char *snapshot, struct err *err)
{
	cleanup_stage_lock struct stage_lock lock = STAGE_LOCK_NONE, other = STAGE_LOCK_NONE;
	char name[STAGE_SNAPSHOT_NAME_SIZE], before[STAGE_SNAPSHOT_NAME_SIZE];
	struct staged_log telling;
	struct stage_chain chain;
	int r = hold_unchanged(dry, from->id, snapshot, &other, err);

	if (r == 0)
		r = stage_snapshot_load(&other, snapshot, &chain, err);
	if (r == 0 && stage_lock_touch(&other) < 0)
		r = err_set(err, ERR_STATE, errno, "dry-run", "the layers of session %s cannot be protected from "
							      "gc", from->id);
	if (r == 0)
		r = hold_unchanged(dry, dry->origin.id, dry->base, &lock, err);
	if (r == 0)
		r = stage_snapshot_next_name(&lock, "done-", name, err);
	if (r == 0)
		r = stage_snapshot_take_over(&lock, &chain, name, "what a trial had shown", err);
	if (r == 0)
		r = staged_log_begin(&telling, &lock, AUDIT_STAGE_RESTORE, name, err);
	if (r == 0)
		r = staged_log_end(&telling, stage_snapshot_restore(&lock, name, before, err), err);
	return r == 0 ? staged_mark(dry->state, dry->origin.id, true, err) : r;
}

static int take_over_real(struct dry_run *dry, struct err *err)
{
	const struct staged_snapshot wanted = { .prefix = "tried-" };
	char name[STAGE_SNAPSHOT_NAME_SIZE];
	int r;

	/* It wrote nothing: the origin holds already what it left. */
	if (!dry->real.is_staged)
		return 0;
	r = name_state(dry, &dry->real, &wanted, name, err);
	if (r == 0)
		r = take_over(dry, &dry->real, name, err);
	if (r == 0)
		r = staged_forget(dry->state, dry->real.id, name, err);
	return r == 0 ? discard(dry, &dry->real, err) : r;
}

/* 1: the origin is what the trial began with; 0. */
static int is_unmoved(const struct dry_run *dry, struct err *err)
{
	cleanup_stage_lock struct stage_lock lock = STAGE_LOCK_NONE;
	int r = stage_lock_open(dry->state, dry->origin.id, &lock, err);

	return r < 0 ? r : lock.is_live ? 0 : stage_snapshot_is_current(&lock, dry->record.snapshot, err);
}

/* 1: what was tried can be had as it is; 0: it must be done again. */
static int can_take_over(const struct dry_run *dry, struct err *err)
{
	if (!dry_run_reached_nobody(dry) || dry->record.writes_host || (dry->trial.is_staged && !*dry->record.shown))
		return 0;
	return dry->has_origin ? is_unmoved(dry, err) : 1;
}

/* Nothing is dropped or forgotten before all of it has worked. */
static int adopt(struct dry_run *dry, struct err *err)
{
	cleanup_stage_lock struct stage_lock lock = STAGE_LOCK_NONE;
	int r = 0;

	if (!dry->has_origin && dry->trial.is_staged)
		r = hold_unchanged(dry, dry->trial.id, dry->record.shown, &lock, err);
	if (r == 0 && !dry->has_origin)
		r = keep_trial(dry, err);
	/* Where it wrote nothing, the origin holds already what it left. */
	if (r == 0 && dry->has_origin && dry->trial.is_staged)
		r = take_over(dry, &dry->trial, dry->record.shown, err);
	if (r == 0)
		dry->done = DRY_RUN_TAKEN_OVER;
	return r;
}

/* In a session that runs it is one more command; what it left there gets a name to be compared by. */
static int again_in_live(struct dry_run *dry, struct err *err)
{
	const struct staged_snapshot wanted = { .prefix = "done-", .message = "what was tried, done for real" };
	int r = dry_run_exec(dry, err);

	if (r < 0)
		return r;
	dry->status = r;
	r = name_state(dry, &dry->origin, &wanted, dry->real_snapshot, err);
	if (r == 0)
		r = dry_run_compare(dry, dry->origin.id, dry->real_snapshot, err);
	return r;
}

/* What the origin is now is what it is done upon, and where a way back leads. */
static int take_base(struct dry_run *dry, struct err *err)
{
	int r = is_unmoved(dry, err);

	return r == 0 ? name_origin(dry, "before it was done for real", dry->base, err) : r < 0 ? r : 0;
}

static int again(struct dry_run *dry, struct err *err)
{
	const struct dry_run_go real = { .prefix = "real-", .is_mute = dry->given->json,
					 .flags = dry->has_origin || dry->given->json ? REQUEST_QUIET : 0 };
	int r;

	dry->done = DRY_RUN_AGAIN;
	if (dry->has_origin && dry->origin.is_live)
		return again_in_live(dry, err);
	r = dry_run_go(dry, &real, &dry->real, err);
	if (r < 0)
		return r;
	dry->has_real = true;
	dry->status = r;
	return dry_run_compare(dry, dry->real.id, NULL, err);
}

/* What came out otherwise than was shown is asked about again. */
static int conclude_again(struct dry_run *dry, struct err *err)
{
	if (dry->differs && !dry_run_ask_again(dry)) {
		dry->done = DRY_RUN_DIFFERS;
		if (!dry_run_ask_back(dry))
			return 0;
		dry->done = DRY_RUN_BACK;
		return dry_run_go_back(dry, err);
	}
	return dry->has_origin && dry->has_real ? take_over_real(dry, err) : 0;
}

/* What was shown and what came of it lie in other sessions now; where they differ, both are kept to be looked at. */
static int clean_up(struct dry_run *dry, struct err *err)
{
	bool is_kept = dry->done == DRY_RUN_TAKEN_OVER && !dry->has_origin;
	int r = 0;

	if (dry->done == DRY_RUN_DIFFERS)
		return 0;
	r = dry_run_forget_shown(dry->state, dry->trial.id, &dry->record, err);
	return r == 0 && !is_kept ? discard(dry, &dry->trial, err) : r;
}

static int carry_out(struct dry_run *dry, bool is_taken_over, struct err *err)
{
	int r;

	if (is_taken_over)
		return adopt(dry, err);
	r = dry->has_origin ? take_base(dry, err) : 0;
	if (r == 0)
		r = again(dry, err);
	return r == 0 ? conclude_again(dry, err) : r;
}

/* It may have been stopped, or have ended, while somebody looked at the trial. */
static int look_for_origin(struct dry_run *dry, struct err *err)
{
	if (!dry->has_origin)
		return 0;
	session_record_done(&dry->origin);
	dry->origin = (struct session_record){ 0 };
	return session_find(dry->state, NULL, dry->record.origin, NULL, &dry->origin, err);
}

/* Told to the trial's log first. What fails before anything happened leaves the trial to be accepted. */
static int do_for_real(struct dry_run *dry, struct err *err)
{
	bool is_taken_over;
	struct err unheard;
	int r = look_for_origin(dry, err);

	if (r == 0)
		r = can_take_over(dry, err);
	is_taken_over = r == 1;
	if (r >= 0)
		r = dry_run_log(dry, is_taken_over ? "taken over" : "done again", err);
	if (r == 0)
		r = dry_run_logged(dry, carry_out(dry, is_taken_over, err), err);
	if (r < 0 && dry->done == DRY_RUN_UNDECIDED &&
	    dry_run_record_release(dry->state, dry->trial.id, &unheard) < 0)
		return r;
	return r == 0 ? clean_up(dry, err) : r;
}

/* ---- the whole ---- */

static bool is_wanted(struct dry_run *dry)
{
	if (dry->given->yes || (dry->given->if_clean && dry_run_is_clean(dry)))
		return true;
	return dry_run_ask(dry);
}

/* A no is one for good. */
static int drop(struct dry_run *dry, struct err *err)
{
	int r = dry_run_forget_origin(dry->state, &dry->record, err);

	if (r == 0)
		r = dry_run_forget_shown(dry->state, dry->trial.id, &dry->record, err);
	return r == 0 ? discard(dry, &dry->trial, err) : r;
}

static bool is_done(const struct dry_run *dry)
{
	return dry->done == DRY_RUN_TAKEN_OVER || dry->done == DRY_RUN_AGAIN;
}

static int decide(struct dry_run *dry, struct err *err)
{
	bool is_yes = is_wanted(dry);
	int r = 0;

	if (is_yes || dry->is_refused)
		r = dry_run_record_claim(dry->state, dry->trial.id, err);
	if (r == 0 && is_yes)
		r = do_for_real(dry, err);
	else if (r == 0 && dry->is_refused)
		r = drop(dry, err);
	if (r != 0)
		return r;
	r = dry_run_tell(dry, err);
	return r < 0 ? r : is_done(dry) ? dry->status : DRY_RUN_NOT_DONE;
}

static int look_and_decide(struct dry_run *dry, struct err *err)
{
	int r = dry_run_look(dry, err);

	if (r == 0)
		r = dry_run_show(dry, err);
	return r == 0 ? decide(dry, err) : r;
}

static int find_places(struct dry_run *dry, struct err *err)
{
	int r = session_state_dir(dry->state, sizeof dry->state, true, err);

	if (r == 0 && !getcwd(dry->started_in, sizeof dry->started_in))
		r = err_set(err, ERR_STATE, errno, "dry-run", "the working directory is gone: %s", strerror(errno));
	return r;
}

static void dry_run_done(struct dry_run *dry)
{
	session_record_done(&dry->origin);
	session_record_done(&dry->trial);
	session_record_done(&dry->real);
	dry_run_record_done(&dry->record);
	close_fd(&dry->changes_fd);
	close_fd(&dry->effects_fd);
	close_fd(&dry->difference_fd);
	free(dry);
}
#define cleanup_dry_run __attribute__((cleanup(dry_run_free)))

void dry_run_free(struct dry_run **dry)
{
	if (*dry)
		dry_run_done(*dry);
}

struct dry_run *dry_run_new(const struct dry_run_options *given, struct err *err)
{
	struct dry_run *dry = calloc(1, sizeof *dry);

	if (!dry) {
		err_set(err, ERR_INTERNAL, ENOMEM, "dry-run", "out of memory");
		return NULL;
	}
	dry->given = given;
	dry->changes_fd = dry->effects_fd = dry->difference_fd = FD_NONE;
	return dry;
}

int dry_run(const struct dry_run_options *given, struct err *err)
{
	cleanup_dry_run struct dry_run *dry = dry_run_new(given, err);
	int r = dry ? find_places(dry, err) : -ENOMEM;

	if (dry)
		set_record(dry);
	if (r == 0 && given->session)
		r = take_origin(dry, err);
	if (r == 0)
		r = try(dry, err);
	return r == 0 ? look_and_decide(dry, err) : r;
}

/* What was tried is looked at again: it is what it was, and only the answer was missing. */
static int reopen(struct dry_run *dry, const char *trial, struct err *err)
{
	int r = session_find(dry->state, NULL, trial, NULL, &dry->trial, err);

	if (r == 0 && dry->trial.is_live) {
		err_set(err, ERR_STATE, EBUSY, "dry-run", "trial %s is still running", dry->trial.id);
		return -EBUSY;
	}
	if (r == 0)
		r = dry_run_record_load(dry->state, dry->trial.id, &dry->record, err);
	if (r < 0)
		return r;
	dry->has_trial = true;
	dry->status = dry->trial.exit;
	if (*dry->record.origin)
		r = session_find(dry->state, NULL, dry->record.origin, NULL, &dry->origin, err);
	dry->has_origin = *dry->record.origin && r == 0;
	if (r == 0)
		r = str_copy(dry->base, sizeof dry->base, dry->record.snapshot);
	if (r == 0 && chdir(dry->record.started_in) < 0)
		r = err_set(err, ERR_STATE, errno, "dry-run",
			    "the directory that it was started in cannot be entered: %s", strerror(errno));
	return r;
}

int dry_run_accept(const char *trial, const struct dry_run_options *given, struct err *err)
{
	cleanup_dry_run struct dry_run *dry = dry_run_new(given, err);
	int r = dry ? find_places(dry, err) : -ENOMEM;

	if (r == 0)
		r = reopen(dry, trial, err);
	return r == 0 ? look_and_decide(dry, err) : r;
}

int dry_run_discard(const struct dry_run *dry, struct err *err)
{
	return discard(dry, &dry->trial, err);
}

int dry_run_try(struct dry_run *dry, const struct trial_begin *begin, struct err *err)
{
	struct dry_run_options *given = (struct dry_run_options *)dry->given;
	int r = session_state_dir(dry->state, sizeof dry->state, false, err);

	given->session = begin->session;
	given->command = begin->argv;
	given->setup.cwd = begin->cwd;
	set_record(dry);
	dry->record.started_in = begin->cwd;
	dry->exact_env = begin->env;
	if (r == 0)
		r = take_origin(dry, err);
	if (r == 0)
		r = try(dry, err);
	return r == 0 ? dry_run_look(dry, err) : r > 0 ? err_set(err, ERR_STATE, EIO, "dry-run",
								 "its changes cannot be kept") : r;
}
