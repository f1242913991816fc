/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "client/staged.h"
#include "prog/atoll/verb/cmd.h"
#include "prog/atoll/verb/say.h"
#include "stage/snapshot/snapshot.h"

/*
 * `atoll restore`: makes a snapshot the state of its session again. What the state was gets a name first. Where the
 * session lives, atoll-stage does it.
 */

struct restore_options {
	bool quiet;
};

static const struct option options[] = {
	{ 'q', "quiet", NULL, "say nothing when it worked", OPTION_FLAG, offsetof(struct restore_options, quiet) },
};

static int say_restored(const char *session, const char *name, const char *before, struct err *err)
{
	cleanup_buf struct buf text;

	buf_init(&text, 4096);
	if (*before)
		buf_printf(&text, "%s is what %s holds now; back with: atoll restore %s %s\n", name, session, session,
			   before);
	else
		buf_printf(&text, "%s is what %s holds already\n", name, session);
	return say_out(&text, err);
}

static int restore(struct stage_lock *lock, const char *name, char before[STAGE_SNAPSHOT_NAME_SIZE], struct err *err)
{
	struct staged_log telling;
	struct stage_chain chain;
	int r = stage_lock_need_idle(lock, "a restore", err);

	if (r == 0)
		r = stage_snapshot_load(lock, name, &chain, err);
	if (r == 0)
		r = staged_log_begin(&telling, lock, AUDIT_STAGE_RESTORE, name, err);
	return r < 0 ? r : staged_log_end(&telling, stage_snapshot_restore(lock, name, before, err), err);
}

static int restore_ended(const char *state, const struct session_record *record, const char *name, bool is_quiet,
			 struct err *err)
{
	cleanup_stage_lock struct stage_lock lock = STAGE_LOCK_NONE;
	char before[STAGE_SNAPSHOT_NAME_SIZE];
	int r = stage_lock_open(state, record->id, &lock, err);

	if (r == 0)
		r = restore(&lock, name, before, err);
	if (r == 0)
		r = staged_mark(state, record->id, true, err);
	if (r < 0)
		return r;
	staged_flatten_later(state, &lock);
	return is_quiet ? 0 : say_restored(record->id, name, before, err);
}

static int run_verb(int argc, char **argv, struct err *err)
{
	cleanup_session_record struct session_record record = { 0 };
	struct restore_options given = { 0 };
	char state[PATH_MAX];
	const char *name;
	int rest, r = cmd_parse(&cmd_restore, &given, argc, argv, &rest, err);

	if (r < 0)
		return r;
	if (argc - rest < 1 || argc - rest > 2) {
		err_set(err, ERR_USAGE, EINVAL, "restore", argc == rest ? "which snapshot?" : "one snapshot at a time");
		err_hint(err, "atoll restore [ID] NAME; atoll snapshot --list shows the names");
		return -EINVAL;
	}
	name = argv[argc - 1];
	r = staged_find(argc - rest == 2 ? argv[rest] : NULL, state, &record, err);
	if (r < 0)
		return r;
	return record.is_live ? staged_restore_running(state, &record, name, given.quiet, err)
			      : restore_ended(state, &record, name, given.quiet, err);
}

const struct cmd cmd_restore = {
	"restore", "[ID] SNAPSHOT", "go back to a snapshot",
	CMD_OPTIONS(options), .run = run_verb,
};
