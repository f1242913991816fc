/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/verb/dry-run-end.h"

#include <errno.h>

#include "client/staged.h"

static int forget(const char *state, const char *session, const char *name, struct err *err)
{
	struct err why = { 0 };
	int r = *session && *name ? staged_forget(state, session, name, &why) : 0;

	/* The session may be gone, or somebody may have forgotten it. */
	if (r == 0 || r == -ENOENT)
		return 0;
	*err = why;
	return r;
}

int dry_run_forget_shown(const char *state, const char *trial, const struct dry_run_record *record, struct err *err)
{
	return forget(state, trial, record->shown, err);
}

int dry_run_forget_origin(const char *state, const struct dry_run_record *record, struct err *err)
{
	return forget(state, record->origin, record->snapshot, err);
}

int dry_run_drop(const char *state, const char *trial, struct err *err)
{
	struct dry_run_record record;
	struct err unheard = { 0 };
	int r = dry_run_record_load(state, trial, &record, &unheard);

	/* Of a damaged one nobody can tell what it began with; it is to be dropped all the same. */
	if (r < 0)
		return 0;
	r = dry_run_record_claim(state, trial, err);
	if (r == 0)
		r = dry_run_forget_origin(state, &record, err);
	if (r == 0)
		r = dry_run_forget_shown(state, trial, &record, err);
	dry_run_record_done(&record);
	return r;
}
