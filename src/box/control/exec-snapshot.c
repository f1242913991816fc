/* SPDX-License-Identifier: Apache-2.0 */
#include "box/control/exec-snapshot.h"

#include <stdlib.h>

#include "base/str.h"
#include "box/control/client.h"
#include "box/control/control.h"
#include "box/state/sandbox.h"
#include "supervise/snapshot-job.h"

/* One at a time. */
struct exec_snapshot {
	struct snapshot_job job;
	const struct client *client; /* for whose next command, never looked into; NULL: it has used it */
	bool is_taken;
	char why[SNAPSHOT_SAID_MAX]; /* it was not */
};

bool exec_snapshot_is_wanted(const struct box *box)
{
	const struct session_record *record = &box->store.record;

	return record->is_kept_at_exec && record->is_staged && box->run.ended == ENDED_NOT;
}

static int on_taken(void *context, const char *name, const char *why)
{
	struct box *box = context;
	struct exec_snapshot *snapshot = box->control.exec_snapshot;

	snapshot->is_taken = name;
	(void)!str_copy(snapshot->why, sizeof snapshot->why, name || !why ? "" : why);
	control_resume(box);
	return 0;
}

/* NULL: no memory. */
static struct exec_snapshot *find(struct box *box)
{
	struct exec_snapshot *snapshot = box->control.exec_snapshot;

	if (snapshot)
		return snapshot;
	snapshot = calloc(1, sizeof *snapshot);
	if (snapshot)
		snapshot_job_init(&snapshot->job, &box->run, on_taken, box);
	box->control.exec_snapshot = snapshot;
	return snapshot;
}

bool exec_snapshot_must_wait(struct client *client)
{
	struct box *box = client->box;
	struct exec_snapshot *snapshot = exec_snapshot_is_wanted(box) ? find(box) : NULL;
	int r;

	if (!snapshot)
		return false;
	if (snapshot_job_is_busy(&snapshot->job))
		return true;
	/* While everything stands still a command is refused, whatever was taken for it. */
	if (snapshot->client == client || freeze_is_on(box->run.freeze))
		return false;
	snapshot->client = client;
	snapshot->is_taken = false;
	r = snapshot_job_start(&snapshot->job, "--auto", NULL);
	if (r < 0)
		(void)!str_copy(snapshot->why, sizeof snapshot->why, err_errno_name(-r));
	return r == 0;
}

int exec_snapshot_use(struct client *client, struct err *err)
{
	struct box *box = client->box;
	struct exec_snapshot *snapshot = box->control.exec_snapshot;
	bool is_for_it = snapshot && snapshot->client == client && !snapshot_job_is_busy(&snapshot->job);

	if (!exec_snapshot_is_wanted(box))
		return 0;
	if (is_for_it)
		snapshot->client = NULL;
	if (is_for_it && snapshot->is_taken)
		return 0;
	err_set(err, ERR_STATE, EIO, "snapshot", "the policy wants a snapshot before each command (stage.auto): %s",
		is_for_it && *snapshot->why ? snapshot->why : "none could be taken");
	err_hint(err, "`atoll snapshot %s` takes one, or says why there is none", box->run.request->session);
	return -EIO;
}

void exec_snapshot_done(struct box *box)
{
	struct exec_snapshot *snapshot = box->control.exec_snapshot;

	if (snapshot)
		snapshot_job_close(&snapshot->job);
	free(snapshot);
	box->control.exec_snapshot = NULL;
}
