/* SPDX-License-Identifier: Apache-2.0 */
#include "box/box.h"

#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "approve/token-grants.h"
#include "base/str.h"
#include "box/modules.h"
#include "box/state.h"
#include "gate-exec/dry-run.h"
#include "gate-exec/gate.h"
#include "gate-exec/verifier.h"
#include "gate-net/lockdown.h"

/*
 * One run, in order:
 *   guardian   who tidies up should we be killed
 *   limits     the cgroup, or what stands in for it
 *   plan       policy -> mounts
 *   jail       namespaces, mounts, Landlock, capabilities; atoll-init runs. While its child makes the namespaces:
 *     store    the session's directory, its lock and its log
 *     spawn    the command's message waits in init's socket before init exists
 *   serve      until PID 1 is dead and all output is delivered
 *   tear-down  cgroups, socket, record, report: each step also when one before failed
 */

/* See run_end(). */
static void kill_all(void *context)
{
	struct box *box = context;

	/* The cgroup first: it also reaches what hides from us. PID 1 takes its whole namespace with it. */
	if (box->run.limits)
		(void)!limit_group_kill(box->run.limits); /* the rlimit backend has nothing to kill with */
	/* It is dead already, or it cannot be killed: then it goes when the wire does. */
	if (box->run.init.fd >= 0 && !box->run.is_dead && pidref_signal(&box->run.init, SIGKILL) < 0 &&
	    shutdown(box->wire_fd, SHUT_RDWR) < 0)
		return;
}

/* For `atoll ps`, which is all that a failure would be missed by. */
static void show_frozen(struct box *box, bool is_frozen)
{
	struct session_record *record = &box->store.record;

	if (record->is_frozen == is_frozen)
		return;
	record->is_frozen = is_frozen;
	if (session_store(box->store.dir_fd, record) < 0)
		return;
}

static int release_waiting(void *context)
{
	const struct box *box = context;

	return exec_gate_release(box->exec_gate);
}

static void freeze_begun(void *context)
{
	show_frozen(context, true);
}

/* The time that nobody could use counts against no limit. */
static void freeze_ended(void *context, uint64_t unused_ns)
{
	struct box *box = context;

	clocks_pause(&box->clocks, unused_ns);
	for (size_t i = 0; i < BOX_COMMANDS_MAX; i++)
		if (box->commands[i] && box->commands[i]->deadline_ns != UINT64_MAX)
			box->commands[i]->deadline_ns += unused_ns;
	show_frozen(box, false);
	control_resume(box);
}

static bool is_awaited(void *context, const char *path)
{
	return queue_waits_for_path(&((struct box *)context)->queue, path);
}

/* ---- the channels to people ---- */

static bool is_followed(void *context)
{
	return control_is_followed(context);
}

static bool is_prompt_possible(void *context)
{
	return prompt_is_possible(context);
}

static void ring(void *context)
{
	prompt_ring(context);
}

static bool are_notices_heard(void *context)
{
	return notifier_is_heard(context);
}

static struct relay *main_output(void *context, unsigned stream)
{
	struct box *box = context;

	for (size_t i = 0; i < BOX_COMMANDS_MAX; i++)
		if (box->commands[i] && box->commands[i]->is_main)
			return &box->commands[i]->stdio.relays[stream];
	return NULL;
}

static void init_approval(struct box *box)
{
	box->queue = (struct queue){
		.run = &box->run,
		.mounts = &box->mounts,
		.channels = { { is_followed, NULL, box },
			      { is_prompt_possible, ring, &box->prompt },
			      { are_notices_heard, NULL, &box->notifier } },
	};
	prompt_init(&box->prompt, &box->run, &box->queue, &(struct prompt_owner){ main_output, box });
	box->notifier = (struct notifier){ .run = &box->run, .queue = &box->queue };
	box->reviewer = (struct reviewer){ .run = &box->run, .queue = &box->queue };
}

static int run(struct box *box)
{
	int r = report_prepare(box);

	if (r == 0)
		r = build_ground(box);
	if (r == 0)
		r = build_signals(box);
	if (r == 0)
		r = loop_init(box->run.loop);
	if (r == 0)
		r = build_jail(box);
	if (r == 0)
		r = serve_start(box);
	if (r == 0)
		r = gate_listen(&box->gate);
	if (r < 0)
		return r;
	summary_print_missing(box);
	box->looked_ns = box->flushed_ns = clock_monotonic_ns();
	r = disk_full_init(&box->disk, &box->run, &box->staging, box->looked_ns);
	if (r < 0)
		return err_set(box->run.err, ERR_STATE, -r, "stage", "the file system of %s cannot be watched: %s",
			       box->run.request->state_dir, err_errno_name(-r));
	clocks_init(&box->clocks, box->run.policy->policy, (unsigned)sysconf(_SC_NPROCESSORS_ONLN), box->looked_ns);
	if (box->run.request->starter)
		clocks_set_deadline(&box->clocks, box->run.policy->policy, box->looked_ns,
				    box->run.request->starter->deadline_ms);
	/* From here on the command starts by itself as soon as init is ready; what follows costs it no time.
	 */
	r = events_session_start(box);
	if (r == 0)
		r = agent_trust_begin(&box->agent_trust);
	if (r == 0)
		r = token_grants_add_first(&box->queue, box->run.err);
	if (r == 0)
		r = publish_announce(&box->gate);
	if (r == 0)
		r = control_start(box);
	if (r == 0)
		r = serve(box);
	return r;
}

static int exit_status(const struct box *box)
{
	switch (box->run.ended) {
	case ENDED_TIME:
		return 124;
	case ENDED_MEMORY:
	case ENDED_DISK:
	case ENDED_OUTPUT:
		return 137;
	case ENDED_POLICY:
		return 125;
	case ENDED_STOPPED:
		return 128 + (box->exit_signal ? box->exit_signal : SIGTERM);
	case ENDED_SIGNAL:
		/* The kernel killed the command itself for memory: that is how a v1 group or a single victim
		 * looks. */
		return 128 + box->exit_signal;
	default:
		/* What the user's file did not take is gone: that must not look like success. */
		return box->exit_code == 0 && box->lost_errno ? 125 : box->exit_code;
	}
}

/* The command that was killed by the memory limit ended by it, and not by some signal. */
static void name_memory_kill(struct box *box)
{
	if (box->run.ended == ENDED_SIGNAL && box->exit_signal == SIGKILL && box->run.usage.oom_kills)
		box->run.ended = ENDED_MEMORY;
}

static int finish_log(struct box *box, int status)
{
	char head[HASH_HEX_SIZE];
	int r = box_note_hits(box);

	if (r == 0)
		r = anomaly_learn(&box->anomaly, box->failure_status);
	if (r == 0)
		r = file_gate_flush(&box->files, true);
	if (r == 0)
		r = agent_trust_end(&box->agent_trust, box->failure_status);
	if (r == 0)
		r = events_session_end(box, status);
	if (r == 0)
		r = audit_flush(box->run.audit);
	hash_to_hex(&box->run.audit->head, head);
	free(box->store.record.audit_head);
	free(box->store.record.ended);
	box->store.record.audit_head = str_printf("sha256:%s", head);
	box->store.record.ended = str_dup(ended_names[box->run.ended]);
	box->store.record.audit_records = box->run.audit->next_seq - 1;
	box->store.record.ended_ns = clock_realtime_ns();
	box->store.record.is_frozen = false;
	box->store.record.exit = status;
	/* ERR_INTERNAL: that the sandbox was lost; this is why. What has a cause of its own keeps it. */
	if (r < 0 && (box->run.err->code == ERR_NONE || box->run.err->code == ERR_INTERNAL)) {
		err_set(box->run.err, ERR_STATE, -r, "audit",
			"the log could not be written (%s), so the sandbox was stopped", err_errno_name(-r));
		err_hint(box->run.err, r == -ENOSPC || r == -EDQUOT ? "free some space below %s"
								  : "see whether %s can be written",
			 box->run.request->state_dir);
	}
	return r;
}

/* Kills and reaps what is left; after this nothing runs inside. */
static int end_jail(struct box *box)
{
	siginfo_t info;
	int r;

	prompt_done(&box->prompt);
	reviewer_close(&box->reviewer);
	run_end(&box->run, ENDED_POLICY);
	if (box->run.init.fd >= 0 && !box->run.is_dead &&
	    pidref_wait(&box->run.init, WEXITED, &info, &box->rusage) > 0)
		box->run.is_dead = true;
	r = processes_done(&box->processes);
	for (size_t i = 0; i < BOX_COMMANDS_MAX; i++)
		command_free(box->commands[i]);
	return r;
}

/* Everything that is not this process's alone: it would outlive it, or somebody waits for it. */
static void leave(struct box *box)
{
	bool are_groups_gone;

	control_close(box);
	access_gate_close(box->requests);
	box->requests = NULL;
	jail_free(box->jail);
	box->jail = NULL;
	exec_gate_close(box->exec_gate);
	are_groups_gone = limit_group_free(box->run.limits);
	box->run.limits = NULL;
	/* Else it is the guardian's, behind the groups. */
	if (are_groups_gone)
		control_unlink(box);
	/* With the lock: whoever is told that it is over finds it so. */
	store_done(&box->store);
	/* From here on nothing fails that is looked at: the guardian that wakes up has our memory, errno included. */
	if (are_groups_gone)
		guardian_dismiss(&box->guardian, staging_trash(&box->staging, box->run.request));
	else
		guardian_leave_to(&box->guardian);
	control_dismiss_clients(box);
}

/* One in a process, and what it always has: as fresh zero pages, which calloc() would look through. */
static struct box the_box;

void box_release(void)
{
	struct box *box = &the_box;

	if (box->run.watch)
		events_watch_end(box);
	watch_free(box->run.watch);
	box->run.watch = NULL;
	exec_gate_free(box->exec_gate);
	box->exec_gate = NULL;
	close_fd(&box->watch_options.root_fd);
	modules_done(box);
	pidref_done(&box->run.init);
	close_fd(&box->wire_fd);
	close_fd(&box->signal_fd);
	close_fd(&box->announce_fd);
	close_fd(&box->report_fd);
	staging_done(&box->staging);
	loop_done(box->run.loop);
}

/* --discard is told before it happens; where the log does not take that, everything is kept. */
static void conclude_staging(struct box *box)
{
	struct staging *staging = &box->staging;
	bool drops, tells;
	int r;

	staging_count(staging, box->run.request, box->run.policy->policy);
	/* A log that fails here fails again at the end of the session, which says so. */
	(void)!anomaly_module.check(&box->anomaly, clock_monotonic_ns());
	(void)!anomaly_look_at_staged(&box->anomaly);
	drops = box->run.request->flags & REQUEST_DISCARD && staging->has_changes;
	tells = drops && !staging->is_as_origin;
	if (tells && events_discard(box, REVIEW_BEGUN) < 0)
		drops = tells = false;
	r = staging_conclude(staging, box->run.request, drops, box->store.dir_fd);
	/* A log that fails now fails for good: the end of the session is told to it next. */
	if (tells)
		(void)!events_discard(box, r < 0 ? REVIEW_FAILED : REVIEW_DONE);
	box->store.record.is_staged = staging->is_kept;
}

/* A program that gave up waiting was refused, and whoever reads the log later finds it so. */
static int end_questions(struct box *box)
{
	file_gate_end(&box->files);
	return queue_end(&box->queue);
}

static int conclude(struct box *box, int r, int *ret_status)
{
	bool was_alive = box->init_state != 0;

	moves_done(&box->moves);
	if (end_jail(box) < 0 && r == 0)
		r = -EIO;
	if (r == 0)
		r = end_questions(box);
	if (gate_finish(&box->gate) < 0 && r == 0)
		r = -EIO;
	if (r == 0)
		r = fuse_finish(&box->servers, box->run.err);
	else
		(void)!fuse_finish(&box->servers, &(struct err){ 0 });
	run_stage(&box->run, "run");
	if (was_alive)
		conclude_staging(box);
	/* After the last alert: what was staged is looked at for one. */
	notifier_close(&box->notifier);
	if (box->store.dir_fd < 0)
		return r;
	box_read_usage(box);
	name_memory_kill(box);
	*ret_status = r < 0 ? 125 : exit_status(box);
	if (!was_alive && r < 0) { /* never came to life: nothing to review */
		store_discard(&box->store);
		return r;
	}
	if (r == 0)
		r = finish_log(box, *ret_status);
	else
		(void)!finish_log(box, *ret_status);
	if (store_save(&box->store, r < 0 ? NULL : box->run.err) < 0 && r == 0)
		r = -EIO;
	run_stage(&box->run, "end");
	if (report_write(box, *ret_status, r < 0 ? NULL : box->run.err) < 0 && r == 0)
		r = -EIO;
	return r;
}

static bool is_planted(const void *planted, const char *path)
{
	return canaries_have(planted, path);
}

/* ---- what is done to the network where something was seen ---- */

static int close_net(void *context)
{
	return lockdown_begin(context);
}

static int can_change_net(void *context)
{
	const struct net_gate *gate = context;

	return !gate->is_used ? 1 : gate->change.is_pending ? -EBUSY : 0;
}

static int change_net(void *context, int snapshot_fd)
{
	struct policy_change_asker nobody = { .uid = getuid(), .pid = getpid() };
	struct err err = { 0 };

	return policy_change_begin(context, snapshot_fd, &nobody, &err);
}

int box_run(const struct run_request *request, const struct run_policy *policy, int announce_fd,
	    int *ret_status, bool *ret_apply, struct err *err)
{
	static uint8_t messages[2][FRAME_MESSAGE_MAX];
	struct box *box = &the_box;
	int r;

	box->run.audit = &box->audit;
	box->run.loop = &box->loop;
	box->run.hub = &box->hub;
	box->run.refusals = &box->refusals;
	box->run.freeze = &box->freeze;
	box->run.identity = &box->watch_options;
	box->watch_options.root_fd = FD_NONE;
	box->mounts = (struct runtime_mounts){ .run = &box->run, .enforcement = &box->enforcement,
					       .owner = { is_awaited, box } };
	init_approval(box);
	box->run.owner = (struct run_owner){ kill_all, box };
	freeze_init(&box->freeze, &box->run,
		    &(struct freeze_owner){ release_waiting, freeze_begun, freeze_ended, box });
	box->run.request = request;
	box->run.policy = policy;
	box->run.err = err;
	box->store = (struct store){ .dir_fd = FD_NONE,
				     .lock_fd = FD_NONE,
				     .audit_fd = FD_NONE,
				     .denials_fd = FD_NONE,
				     .output_fd = FD_NONE };
	staging_init(&box->staging);
	gate_init(&box->gate, &box->run, &box->store, &box->queue);
	canaries_init(&box->canaries, &box->run, &box->alerts);
	box->reactions = (struct reactions){ close_net, can_change_net, change_net, &box->gate };
	box->alerts = (struct alerts){ .run = &box->run,
				       .queue = &box->queue,
				       .notifier = &box->notifier,
				       .prompt = &box->prompt,
				       .agent = &box->agent_trust,
				       .reactions = &box->reactions };
	box->anomaly = (struct anomaly){ &box->run, &box->alerts, &box->canaries, &box->staging, &box->staged_count };
	box->files = (struct file_gate){ &box->run, &box->queue, &box->mounts, &box->disk, is_planted, &box->canaries };
	box->moves = (struct moves){ &box->run, &box->files, &box->disk };
	box->agent_trust.run = &box->run;
	box->agent_trust.reactions = &box->reactions;
	box->run.network_policy = policy->policy;
	box->guardian.pipe_fd = box->run.init.fd = box->wire_fd = box->signal_fd = box->listen_fd =
		box->loop.epoll_fd = box->audit.fd = FD_NONE;
	box->agent_trust.watch_fd = FD_NONE;
	box->announce_fd = announce_fd;
	box->report_fd = FD_NONE;
	box->stop_ns = UINT64_MAX;
	box->run.course.stage_started_ns = request->started_ns;
	buf_init_fixed(&box->run.out, messages[0], sizeof messages[0]);
	buf_init_fixed(&box->run.scratch, messages[1], sizeof messages[1]);
	run_stage(&box->run, "front");
	r = run(box);
	if (r < 0 && err->code == ERR_NONE)
		err_set(err, ERR_INTERNAL, -r, "box", "the sandbox was lost: %s", err_errno_name(-r));
	r = conclude(box, r, ret_status);
	box->status = *ret_status;
	*ret_apply = r == 0 && box_will_apply(box);
	if (r == 0)
		summary_print(box);
	if (audit_writer_done(box->run.audit) < 0 && r == 0)
		r = -EIO;
	leave(box);
	return r;
}
