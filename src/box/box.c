/* SPDX-License-Identifier: Apache-2.0 */
#include "box/box.h"

#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "approve/token-grants.h"
#include "base/str.h"
#include "box/control/control.h"
#include "box/modules.h"
#include "box/report/report.h"
#include "box/state/sandbox.h"
#include "box/steps.h"
#include "gate-exec/gate.h"
#include "gate-net/lockdown.h"
#include "gate-request/gate.h"

/*
 * One run, in order:
 *   guardian   who tidies up should we be killed
 *   limits     the cgroup, or what stands in for it
 *   plan       policy -> mounts
 *   jail       namespaces, mounts, Landlock, capabilities; atoll-init runs. While its child makes the namespaces:
 *     store    the session's directory, its lock and its log
 *     spawn    the command's message waits in init's socket before init exists
 *   park       of a request that is not complete: the wait for the rest of it, and the steps of store that it needs
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
	    shutdown(box->serving.wire_fd, SHUT_RDWR) < 0)
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

	return exec_gate_release(box->gates.exec);
}

static void freeze_begun(void *context)
{
	show_frozen(context, true);
}

/* The time that nobody could use counts against no limit. */
static void freeze_ended(void *context, uint64_t unused_ns)
{
	struct box *box = context;

	clocks_pause(&box->supervision.clocks, unused_ns);
	for (size_t i = 0; i < BOX_COMMANDS_MAX; i++)
		if (box->commands[i] && box->commands[i]->deadline_ns != UINT64_MAX)
			box->commands[i]->deadline_ns += unused_ns;
	show_frozen(box, false);
	control_resume(box);
}

static bool is_awaited(void *context, const char *path)
{
	return queue_waits_for_path(&((struct box *)context)->approval.queue, path);
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
	box->approval.mounts = (struct runtime_mounts){ .run = &box->run, .enforcement = &box->build.enforcement,
							.owner = { is_awaited, box } };
	box->approval.queue = (struct queue){
		.run = &box->run,
		.mounts = &box->approval.mounts,
		.channels = { { is_followed, NULL, box },
			      { is_prompt_possible, ring, &box->approval.prompt },
			      { are_notices_heard, NULL, &box->approval.notifier } },
	};
	prompt_init(&box->approval.prompt, &box->run, &box->approval.queue, &(struct prompt_owner){ main_output, box });
	box->approval.notifier = (struct notifier){ .run = &box->run, .queue = &box->approval.queue };
	box->approval.reviewer = (struct reviewer){ .run = &box->run, .queue = &box->approval.queue };
}

static int run(struct box *box)
{
	int r = box->parking.is_waiting ? park_prepare(box) : report_prepare(box);

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
	if (r == 0 && box->parking.is_waiting)
		r = park(box);
	if (r == 0)
		r = gate_listen(&box->gates.net);
	if (r < 0)
		return r;
	summary_print_missing(box);
	box->serving.looked_ns = box->serving.flushed_ns = clock_monotonic_ns();
	r = disk_full_init(&box->build.disk, &box->run, &box->build.staging, box->serving.looked_ns);
	if (r < 0)
		return err_set(box->run.err, ERR_STATE, -r, "stage", "the file system of %s cannot be watched: %s",
			       box->run.request->state_dir, err_errno_name(-r));
	clocks_init(&box->supervision.clocks, box->run.policy->policy,
		    (unsigned)sysconf(_SC_NPROCESSORS_ONLN), box->serving.looked_ns);
	if (box->run.request->starter)
		clocks_set_deadline(&box->supervision.clocks, box->run.policy->policy, box->serving.looked_ns,
				    box->run.request->starter->deadline_ms);
	/* From here on the command starts by itself as soon as init is ready; what follows costs it no time.
	 */
	r = events_session_start(box);
	if (r == 0)
		r = agent_trust_begin(&box->detection.agent_trust);
	if (r == 0)
		r = token_grants_add_first(&box->approval.queue, box->run.err);
	if (r == 0)
		r = publish_announce(&box->gates.net);
	if (r == 0)
		r = control_start(box);
	/* Init was ready before anybody could hear of it. */
	if (r == 0 && box->run.request->parking)
		r = serve_announce(box);
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
		return 128 + (box->outcome.exit_signal ? box->outcome.exit_signal : SIGTERM);
	case ENDED_SIGNAL:
		/* The kernel killed the command itself for memory: that is how a v1 group or a single victim
		 * looks. */
		return 128 + box->outcome.exit_signal;
	default:
		/* What the user's file did not take is gone: that must not look like success. */
		return box->outcome.exit_code == 0 && box->outcome.lost_errno ? 125 : box->outcome.exit_code;
	}
}

/* The command that was killed by the memory limit ended by it, and not by some signal. */
static void name_memory_kill(struct box *box)
{
	if (box->run.ended == ENDED_SIGNAL && box->outcome.exit_signal == SIGKILL && box->run.usage.oom_kills)
		box->run.ended = ENDED_MEMORY;
}

static int finish_log(struct box *box, int status)
{
	char head[HASH_HEX_SIZE];
	int r = box_note_hits(box);

	if (r == 0)
		r = anomaly_learn(&box->detection.anomaly, box->outcome.failure_status);
	if (r == 0)
		r = file_gate_flush(&box->gates.file, true);
	if (r == 0)
		r = agent_trust_end(&box->detection.agent_trust, box->outcome.failure_status);
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

	owner_close(&box->owner);
	prompt_done(&box->approval.prompt);
	reviewer_close(&box->approval.reviewer);
	run_end(&box->run, ENDED_POLICY);
	if (box->run.init.fd >= 0 && !box->run.is_dead &&
	    pidref_wait(&box->run.init, WEXITED, &info, &box->outcome.rusage) > 0)
		box->run.is_dead = true;
	r = processes_done(&box->supervision.processes);
	for (size_t i = 0; i < BOX_COMMANDS_MAX; i++)
		command_free(box->commands[i]);
	(void)command_forget_old(box, UINT64_MAX);
	return r;
}

/* Everything that is not this process's alone: it would outlive it, or somebody waits for it. */
static void leave(struct box *box)
{
	bool are_groups_gone;

	control_close(box);
	access_gate_close(box->gates.request);
	box->gates.request = NULL;
	jail_free(box->build.jail);
	box->build.jail = NULL;
	exec_gate_close(box->gates.exec);
	are_groups_gone = limit_group_free(box->run.limits);
	box->run.limits = NULL;
	/* Else it is the guardian's, behind the groups. */
	if (are_groups_gone)
		control_unlink(box);
	/* With the lock: whoever is told that it is over finds it so. */
	store_done(&box->store);
	/* From here on nothing fails that is looked at: the guardian that wakes up has our memory, errno included. */
	if (are_groups_gone)
		guardian_dismiss(&box->build.guardian, staging_trash(&box->build.staging, box->run.request));
	else
		guardian_leave_to(&box->build.guardian);
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
	exec_gate_free(box->gates.exec);
	box->gates.exec = NULL;
	close_fd(&box->build.watch_options.root_fd);
	modules_done(box);
	pidref_done(&box->run.init);
	close_fd(&box->serving.wire_fd);
	close_fd(&box->serving.signal_fd);
	close_fd(&box->announce_fd);
	close_fd(&box->report_fd);
	close_fd(&box->parking.mounts_fd);
	staging_done(&box->build.staging);
	loop_done(box->run.loop);
}

/* --discard is told before it happens; where the log does not take that, everything is kept. */
static void conclude_staging(struct box *box)
{
	struct staging *staging = &box->build.staging;
	bool drops, tells;
	int r;

	staging_count(staging, box->run.request, box->run.policy->policy);
	/* A log that fails here fails again at the end of the session, which says so. */
	(void)!anomaly_module.check(&box->detection.anomaly, clock_monotonic_ns());
	(void)!anomaly_look_at_staged(&box->detection.anomaly);
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
	file_gate_end(&box->gates.file);
	return queue_end(&box->approval.queue);
}

static int conclude(struct box *box, int r, int *ret_status)
{
	bool was_alive = box->serving.init_state != 0 && !box->parking.is_waiting;

	moves_done(&box->gates.moves);
	if (end_jail(box) < 0 && r == 0)
		r = -EIO;
	if (r == 0)
		r = end_questions(box);
	if (gate_finish(&box->gates.net) < 0 && r == 0)
		r = -EIO;
	if (r == 0)
		r = fuse_finish(&box->build.servers, box->run.err);
	else
		(void)!fuse_finish(&box->build.servers, &(struct err){ 0 });
	run_stage(&box->run, "run");
	if (was_alive)
		conclude_staging(box);
	/* After the last alert: what was staged is looked at for one. */
	notifier_close(&box->approval.notifier);
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

static void init_run(struct box *box, const struct run_request *request, const struct run_policy *policy,
		     struct err *err)
{
	static uint8_t messages[2][FRAME_MESSAGE_MAX];
	struct box_supervision *supervision = &box->supervision;
	struct run *run = &box->run;

	run->request = request;
	run->policy = policy;
	run->network_policy = policy->policy;
	run->err = err;
	run->audit = &supervision->audit;
	run->loop = &supervision->loop;
	run->hub = &supervision->hub;
	run->refusals = &supervision->refusals;
	run->freeze = &supervision->freeze;
	run->identity = &box->build.watch_options;
	run->owner = (struct run_owner){ kill_all, box };
	run->course.stage_started_ns = request->started_ns;
	run->init.fd = box->build.watch_options.root_fd = supervision->loop.epoll_fd = supervision->audit.fd = FD_NONE;
	buf_init_fixed(&run->out, messages[0], sizeof messages[0]);
	buf_init_fixed(&run->scratch, messages[1], sizeof messages[1]);
	freeze_init(&supervision->freeze, run,
		    &(struct freeze_owner){ release_waiting, freeze_begun, freeze_ended, box });
}

static void init_build(struct box *box)
{
	box->store = (struct store){ .dir_fd = FD_NONE,
				     .lock_fd = FD_NONE,
				     .audit_fd = FD_NONE,
				     .denials_fd = FD_NONE,
				     .output_fd = FD_NONE };
	staging_init(&box->build.staging);
	box->build.guardian.pipe_fd = FD_NONE;
}

static void init_gates(struct box *box)
{
	struct box_gates *gates = &box->gates;

	gate_init(&gates->net, &box->run, &box->store, &box->approval.queue);
	gates->file = (struct file_gate){ &box->run, &box->approval.queue, &box->approval.mounts, &box->build.disk,
					  is_planted, &box->detection.canaries };
	gates->moves = (struct moves){ &box->run, &gates->file, &box->build.disk };
}

static void init_detection(struct box *box)
{
	struct box_detection *detection = &box->detection;

	canaries_init(&detection->canaries, &box->run, &detection->alerts);
	detection->reactions = (struct reactions){ close_net, can_change_net, change_net, &box->gates.net };
	detection->alerts = (struct alerts){ .run = &box->run,
					     .queue = &box->approval.queue,
					     .notifier = &box->approval.notifier,
					     .prompt = &box->approval.prompt,
					     .agent = &detection->agent_trust,
					     .reactions = &detection->reactions };
	detection->anomaly = (struct anomaly){ &box->run, &detection->alerts, &detection->canaries,
					       &box->build.staging, &box->build.staged_count };
	detection->agent_trust.run = &box->run;
	detection->agent_trust.reactions = &detection->reactions;
	detection->agent_trust.watch_fd = FD_NONE;
}

int box_run(const struct run_request *request, const struct run_policy *policy, int announce_fd,
	    int *ret_status, const char **ret_next, struct err *err)
{
	struct box *box = &the_box;
	int r;

	init_run(box, request, policy, err);
	init_build(box);
	init_approval(box);
	init_gates(box);
	init_detection(box);
	box->serving.wire_fd = box->serving.signal_fd = box->control.listen_fd = box->report_fd = FD_NONE;
	box->control.stop_ns = UINT64_MAX;
	box->parking = (struct box_parking){ .is_waiting = request->parking, .mounts_fd = FD_NONE };
	box->announce_fd = announce_fd;
	run_stage(&box->run, "front");
	r = run(box);
	if (r < 0 && err->code == ERR_NONE)
		err_set(err, ERR_INTERNAL, -r, "box", "the sandbox was lost: %s", err_errno_name(-r));
	r = conclude(box, r, ret_status);
	box->outcome.status = *ret_status;
	*ret_next = r < 0 ? NULL : box_next_verb(box);
	if (r == 0)
		summary_print(box);
	if (audit_writer_done(box->run.audit) < 0 && r == 0)
		r = -EIO;
	leave(box);
	return r;
}
