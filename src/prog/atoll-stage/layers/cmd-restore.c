/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Takes a living session back to a snapshot. Descriptor 3 is a connection to its box, which holds everything inside
 * still until we say so or are gone. The present state is copied and named first: whatever happens afterwards, that
 * name leads back to it. (atoll itself restores a session that has ended.)
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "os/clock.h"
#include "os/clone.h"
#include "os/fd.h"
#include "os/identity.h"
#include "os/landlock.h"
#include "prog/atoll-stage/layers/standstill.h"
#include "prog/atoll-stage/verb/audit-step.h"
#include "stage/layer/linked.h"
#include "stage/snapshot/live-restore.h"
#include "stage/snapshot/snapshot.h"

/* Of the minute that a freeze lasts at most (wire/control.h). The rest is for the way back. */
enum { MS_NS = 1000000, WAY_MS = 35000, WAY_BACK_MS = 58000 };

struct restore_options {
	struct verb_session session;
	const char *name;
	bool quiet;
};

static const struct option options[] = {
	VERB_SESSION_OPTIONS(struct restore_options),
	{ 0, "name", "NAME", "the snapshot", OPTION_TEXT, offsetof(struct restore_options, name) },
	{ 'q', "quiet", NULL, "say nothing when it worked", OPTION_FLAG, offsetof(struct restore_options, quiet) },
};

struct job {
	const char *name;
	struct stage_lock lock;
	struct stage_chain wanted;
	char before[STAGE_SNAPSHOT_NAME_SIZE];
	uint32_t layer;                      /* the copy of the present state */
	int host_fds[STAGE_TREES_MAX];       /* owned */
	int live_fds[STAGE_TREES_MAX];       /* owned; O_PATH until they are confined */
	uint64_t begun_ns;
	bool is_changed;
};

static int fail(const struct job *job, int r, const char *what, struct err *err)
{
	return err_set(err, ERR_STATE, -r, "restore", "%s of session %s: %s", what, job->lock.session,
		       err_errno_name(-r));
}

static void job_init(struct job *job, const char *name)
{
	*job = (struct job){ .name = name, .lock = STAGE_LOCK_NONE };
	for (size_t i = 0; i < STAGE_TREES_MAX; i++)
		job->host_fds[i] = job->live_fds[i] = FD_NONE;
}

static void job_done(struct job *job)
{
	for (size_t i = 0; i < STAGE_TREES_MAX; i++) {
		close_fd(&job->host_fds[i]);
		close_fd(&job->live_fds[i]);
	}
	stage_lock_done(&job->lock);
}

static int open_trees(struct job *job, struct err *err)
{
	for (size_t i = 0; i < job->lock.record.tree_count; i++) {
		job->live_fds[i] = standstill_tree(i, err);
		if (job->live_fds[i] < 0)
			return job->live_fds[i];
		job->host_fds[i] = stage_tree_open(&job->lock.record.trees[i], err);
		if (job->host_fds[i] < 0)
			return job->host_fds[i];
	}
	return 0;
}

/* What lies in the session, and the mounted trees, may be changed; the trees of the host are read. */
static int confine(struct job *job, struct err *err)
{
	const uint64_t all = landlock_rights(landlock_abi()) & ~(uint64_t)LANDLOCK_EXECUTE;
	struct confine_place places[2 * STAGE_TREES_MAX + 1] = { { job->lock.sessions_fd, all } };
	size_t count = 1;
	int r;

	for (size_t i = 0; i < job->lock.record.tree_count; i++) {
		places[count++] = (struct confine_place){ job->live_fds[i], all };
		places[count++] = (struct confine_place){ job->host_fds[i], LANDLOCK_READ_FILE | LANDLOCK_READ_DIR };
	}
	/* The sandbox may have closed directories of its own: as layer_gc_confine(). */
	r = geteuid() != 0 ? clone_enter_user_namespace() : identity_drop_groups();
	if (r < 0)
		return err_set(err, ERR_WALL, -r, "confine", "the ids cannot be set up: %s", err_errno_name(-r));
	r = confine_self(CONFINE_STAGE_RESTORE, places, count, err);
	for (size_t i = 0; r == 0 && i < job->lock.record.tree_count; i++) {
		int fd = fd_open_at(job->live_fds[i], ".", O_RDONLY | O_DIRECTORY, 0);

		if (fd < 0)
			return fail(job, fd, "the staged directory", err);
		close(job->live_fds[i]);
		job->live_fds[i] = fd;
	}
	return r;
}

/* The present state gets a name. Nothing has moved while it was copied, for the box would have said so. */
static int keep_present(struct job *job, struct err *err)
{
	int r = stage_snapshot_copy(&job->lock, &job->layer, err);
	cleanup_fd int fd = r < 0 ? FD_NONE : standstill_tree(0, err);

	if (r == 0 && fd >= 0)
		return stage_snapshot_name_copy(&job->lock, job->layer, job->before, NULL, err);
	if (r == 0)
		(void)!stage_snapshot_drop_copy(&job->lock, job->layer); /* nothing names it: gc takes it */
	return r < 0 ? r : fd;
}

static int open_stack(const struct job *job, const struct stage_chain *chain, size_t tree, bool with_live,
		      struct stage_stack *ret_stack)
{
	int r = stage_stack_open(job->lock.sessions_fd, job->lock.stage_fd, chain, tree, with_live, ret_stack);

	if (r < 0)
		return r;
	ret_stack->form = job->lock.record.form;
	ret_stack->host_fd = fd_duplicate(job->host_fds[tree]);
	return ret_stack->host_fd < 0 ? ret_stack->host_fd : 0;
}

static int restore_tree(struct job *job, const struct stage_chain *wanted, size_t tree, uint64_t deadline_ns)
{
	cleanup_stage_stack struct stage_stack now_stack = STAGE_STACK_NONE, wanted_stack = STAGE_STACK_NONE;
	struct stage_live_restore restore = {
		.live_fd = job->live_fds[tree], .now = &now_stack, .wanted = &wanted_stack,
		.uid = job->lock.record.trees[tree].jail_uid, .gid = job->lock.record.trees[tree].jail_gid,
		.deadline_ns = deadline_ns,
	};
	int r = open_stack(job, &job->lock.chain, tree, true, &now_stack);

	if (r == 0)
		r = open_stack(job, wanted, tree, false, &wanted_stack);
	if (r == 0)
		r = stage_live_restore(&restore);
	job->is_changed |= r < 0 || restore.written || restore.removed;
	if (restore.linked)
		(void)!stage_linked_note(job->lock.stage_fd); /* a fork parts such names then, and says so */
	return r;
}

static int restore_trees(struct job *job, const struct stage_chain *wanted, uint64_t until_ms)
{
	uint64_t deadline_ns = job->begun_ns + until_ms * MS_NS;
	int r = 0;

	for (size_t i = 0; r == 0 && i < job->lock.record.tree_count; i++)
		r = restore_tree(job, wanted, i, deadline_ns);
	return r;
}

/* It failed in the middle: the state of before, and if that fails too, its name. */
static int go_back(struct job *job, int cause, struct err *err)
{
	struct stage_chain before;
	int r = stage_snapshot_load(&job->lock, job->before, &before, err);

	if (r == 0)
		r = restore_trees(job, &before, WAY_BACK_MS);
	err_set(err, ERR_STATE, -cause, "restore", "%s could not be restored: %s. %s", job->name,
		err_errno_name(-cause), r == 0 ? "Everything is as it was before" : "Some files are changed already");
	if (r < 0)
		err_hint(err, "what was there before is the snapshot %s: free some space and run atoll restore %s %s",
			 job->before, job->lock.session, job->before);
	else if (cause == -ETIME)
		err_hint(err, "it takes too long for a living session: atoll stop %s, then restore",
			 job->lock.session);
	return cause;
}

/* Nothing differs: the copy of what is there would be a second name for the snapshot. */
static void forget_copy(struct job *job)
{
	struct err ignored;

	if (stage_snapshot_remove(&job->lock, job->before, &ignored) == 0)
		(void)!stage_snapshot_drop_copy(&job->lock, job->layer); /* nothing names it: gc takes it */
	job->before[0] = 0;
}

static int restore_standing(struct job *job, struct audit_step *step, struct err *err)
{
	int r = open_trees(job, err);

	if (r == 0)
		r = confine(job, err);
	if (r == 0)
		r = keep_present(job, err);
	if (r == 0)
		r = audit_step_begin(step, err);
	if (r < 0)
		return r;
	r = restore_trees(job, &job->wanted, WAY_MS);
	if (r < 0)
		return audit_step_end(step, go_back(job, r, err), err);
	if (!job->is_changed)
		forget_copy(job);
	r = standstill_end(err);
	if (r > 0) {
		err_set(err, ERR_STATE, EAGAIN, "restore", "programs inside went on before everything was restored");
		err_hint(err, "what was there before is the snapshot %s; try again", job->before);
		r = -EAGAIN;
	}
	return audit_step_end(step, r, err);
}

static int restore(struct job *job, struct err *err)
{
	cleanup_audit_step struct audit_step step = AUDIT_STEP_INIT;
	int r = stage_lock_need_layers(&job->lock, "a restore", err);

	if (r == 0)
		r = stage_snapshot_load(&job->lock, job->name, &job->wanted, err);
	if (r == 0)
		r = stage_snapshot_next_name(&job->lock, STAGE_BEFORE_RESTORE_PREFIX, job->before, err);
	if (r == 0)
		r = audit_step_open(&step, job->lock.sessions_fd, job->lock.session, AUDIT_STAGE_RESTORE, err);
	step.entry.subject = job->name;
	job->begun_ns = clock_monotonic_ns();
	if (r == 0)
		r = standstill_begin(job->before, err);
	return r < 0 ? r : restore_standing(job, &step, err);
}

static int say(const struct job *job, struct err *err)
{
	int n = *job->before
			? printf("%s is what %s shows now; back with: atoll restore %s %s\n"
				 "A program that has a restored file open keeps the old one until it opens it again.\n",
				 job->name, job->lock.session, job->lock.session, job->before)
			: printf("%s is what %s holds already\n", job->name, job->lock.session);

	return n < 0 || fflush(stdout) != 0
		       ? err_set(err, ERR_STATE, EIO, "restore", "stdout cannot be written") : 0;
}

int cmd_restore(int argc, char **argv, struct err *err)
{
	struct restore_options given = { 0 };
	struct job job;
	int rest, r = options_parse(options, ARRAY_SIZE(options), &given, argc, argv, true, &rest, err);

	if (r == 0 && (!given.session.state || !given.session.id || !given.name))
		r = err_set(err, ERR_USAGE, EINVAL, "restore", "atoll-stage restore is run by atoll");
	if (r < 0)
		return r;
	job_init(&job, given.name);
	r = stage_lock_open(given.session.state, given.session.id, &job.lock, err);
	if (r == 0)
		r = restore(&job, err);
	if (r == 0 && !given.quiet)
		r = say(&job, err);
	job_done(&job);
	return r;
}
