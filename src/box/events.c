/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>

#include "base/num.h"
#include "base/str.h"
#include "box/report/report.h"
#include "box/state/sandbox.h"
#include "box/steps.h"
#include "gate-exec/gate.h"
#include "gate-request/gate.h"
#include "jail/filter.h"
#include "os/proc.h"
#include "policy/describe/refused-syscall.h"
#include "session/narrowing.h"

/* What happens in and around the sandbox, as records of the log. Every function fails closed (audit/writer.h). */

static void put_argv(struct json *json, const char *key, const char *const *argv, size_t left_out)
{
	json_array_begin(json, key);
	for (size_t i = 0; argv[i]; i++)
		json_bytes(json, NULL, argv[i], strlen(argv[i]));
	json_array_end(json);
	if (left_out)
		json_u64(json, "left_out", left_out);
}

/* Variables that the user added to what the policy passes: their names, since a value may be a secret. */
static void put_added(struct json *json, const char *const *added)
{
	json_array_begin(json, "env_added");
	for (size_t i = 0; added && added[i]; i++)
		json_bytes(json, NULL, added[i], strcspn(added[i], "="));
	json_array_end(json);
}

static void start_detail(struct json *json, const void *context)
{
	const struct box *box = context;
	const struct run_request *request = box->run.request;

	json_string(json, "atoll", ATOLL_VERSION);
	json_string(json, "policy", box->run.policy->policy->name);
	json_string(json, "level", trust_level_names[box->run.policy->policy->level]);
	if (request->agent && request->agent->agent)
		json_string(json, "agent", request->agent->agent);
	json_hash(json, "policy_hash", &box->run.policy_hash);
	json_hash(json, "seccomp_hash", &box->build.filter_hash);
	json_bytes(json, "project", request->project, strlen(request->project));
	json_bytes(json, "cwd", request->cwd, strlen(request->cwd));
	put_argv(json, "argv", (const char *const *)request->command.argv, 0);
	put_added(json, (const char *const *)request->command.env_added);
	if (request->task)
		json_bytes(json, "task", request->task, strlen(request->task));
	narrowing_to_json(request->narrowing, json);
	if (request->flags & REQUEST_TRIAL)
		json_bool(json, "trial", true);
	if (request->recording.mode)
		json_string(json, "tape", request->recording.mode == RECORDING_WRITE ? "record" : "replay");
	canaries_to_json(&box->detection.canaries, json);
	report_enforcement(box, json);
}

int events_session_start(struct box *box)
{
	struct audit_event event = {
		.type = AUDIT_SESSION_START,
		.pid = getpid(),
		.subject = box->run.request->session,
		.subject_size = strlen(box->run.request->session),
		.write_detail = start_detail,
		.context = box,
	};

	return audit_write(box->run.audit, &event);
}

struct end_context {
	const struct box *box;
	int status;
};

static void end_detail(struct json *json, const void *context)
{
	const struct end_context *end = context;

	json_string(json, "ended", ended_names[end->box->run.ended]);
	json_i64(json, "status", end->status);
	report_usage(end->box, json);
	json_u64(json, "denials", end->box->run.refusals->denials.total);
}

int events_session_end(struct box *box, int status)
{
	struct end_context context = { box, status };
	struct audit_event event = {
		.type = AUDIT_SESSION_END,
		.subject = box->run.request->session,
		.subject_size = strlen(box->run.request->session),
		.write_detail = end_detail,
		.context = &context,
	};

	return audit_write(box->run.audit, &event);
}

static void command_detail(struct json *json, const void *context)
{
	const struct command *command = context;

	json_u64(json, "command", command->id);
	if (command->failed_errno) {
		json_i64(json, "errno", command->failed_errno);
		return;
	}
	if (command->result.signal)
		json_i64(json, "signal", command->result.signal);
	else
		json_i64(json, "exit", command->result.code);
	json_u64(json, "user_us", command->result.user_us);
	json_u64(json, "system_us", command->result.system_us);
	json_u64(json, "max_rss_bytes", command->result.max_rss_bytes);
	json_u64(json, "wall_us", (clock_monotonic_ns() - command->started_ns) / 1000);
}

int events_command_end(struct box *box, const struct command *command)
{
	struct audit_event event = {
		.type = AUDIT_EXEC_END,
		.write_detail = command_detail,
		.context = command,
	};

	return audit_write(box->run.audit, &event);
}

int events_discard(struct box *box, enum review_phase phase)
{
	const struct stage_counts *counts = &box->build.staging.counts;
	struct review_entry entry = { .type = AUDIT_STAGE_DISCARD, .phase = phase, .subject = box->run.request->session,
				      .uid = getuid() };
	struct audit_event event;
	int r;

	entry.counts[REVIEW_ADDED] = counts->added;
	entry.counts[REVIEW_MODIFIED] = counts->modified;
	entry.counts[REVIEW_DELETED] = counts->deleted;
	event = review_event(&entry);
	event.pid = getpid();
	r = audit_write(box->run.audit, &event);
	return r < 0 ? r : audit_flush(box->run.audit);
}

static void end_of_process_detail(struct json *json, const void *context)
{
	const struct process_end *end = context;

	if (!end->has_status)
		json_null(json, "exit");
	else if (end->signal_number)
		json_i64(json, "signal", end->signal_number);
	else
		json_i64(json, "exit", end->code);
	json_u64(json, "wall_us", end->wall_us);
}

static int on_process_end(void *context, const struct process_end *end)
{
	struct box *box = context;
	struct audit_event event = {
		.type = AUDIT_EXEC_END, .pid = end->pid, .write_detail = end_of_process_detail, .context = end
	};

	return audit_write(box->run.audit, &event);
}

static void port_detail(struct json *json, const void *context)
{
	const struct action *action = context;

	json_u64(json, "port", action->port);
}

static int deny(struct box *box, enum audit_type type, const struct action *action, pid_t pid)
{
	struct decision decision = action->kind == ACTION_SYSCALL ?
					   policy_refuse_syscall(box->run.policy->policy, action) :
					   policy_decide(box->run.policy->policy, action);
	struct audit_event event = {
		.type = type,
		.verdict = verdict_names[VERDICT_DENY],
		.rule = decision.rule.id,
		.pid = pid,
		.subject = action->subject,
		.subject_size = strlen(action->subject),
		.write_detail = action->port ? port_detail : NULL,
		.context = action,
	};
	int r = audit_write(box->run.audit, &event);

	box->run.refusals->denied++;
	return r < 0 ? r : denials_add(&box->run.refusals->denials, action, &decision, 0);
}

static int on_refusal(void *context, const struct watch_refusal *refusal)
{
	char name[PROC_NAME_SIZE];
	const char *const caller[] = { proc_name(refusal->pid, name), NULL };
	struct action action = { .kind = ACTION_SYSCALL, .subject = refusal->syscall, .argv = caller };
	struct box *box = context;
	int r = deny(box, AUDIT_SYSCALL, &action, refusal->pid);

	return r < 0 ? r : hub_publish(box->run.hub, EVENT_SYSCALL, refusal->syscall);
}

static int on_network(void *context, const struct watch_network *network)
{
	struct box *box = context;
	bool listens = str_equal(network->operation, "bind");
	struct action action = { .kind = listens ? ACTION_NET_LISTEN : ACTION_NET_CONNECT,
				 .subject = network->address, .port = network->port };

	if (network->is_refused)
		return deny(box, listens ? AUDIT_NET_LISTEN : AUDIT_NET_CONNECT, &action, network->pid);
	box->run.refusals->allowed++;
	return publish_on_listen(&box->gates.net, network);
}

static int serve_watch(void *context, uint32_t events)
{
	struct box *box = context;
	int served = watch_serve(box->run.watch, 16);
	int r = served < 0 ? served : run_check_log_size(&box->run);

	/* Nobody is left under the filter (1), or the listener broke: then nothing inside can be let through
	 * any more. Left in the loop it would be ready for ever, and keep the CPU from the dying. */
	if (served || r < 0 || events & ~(uint32_t)EPOLLIN)
		events_watch_end(box);
	return r;
}

void events_watch_end(struct box *box)
{
	loop_remove(box->run.loop, &box->serving.listener_source);
	loop_remove(box->run.loop, &box->serving.watch_source);
	if (box->run.watch)
		watch_end_held(box->run.watch);
}

/* ---- what the supervisor tells, handed to its gate ---- */

static int on_exec(void *context, const struct watch_exec *exec, struct watch_exec_answer *ret_answer)
{
	struct box *box = context;

	return exec_gate_judge(box->gates.exec, exec, ret_answer);
}

static int on_image(void *context, uint64_t token, pid_t pid)
{
	struct box *box = context;

	return exec_gate_image(box->gates.exec, token, pid);
}

static void on_over(void *context, uint64_t token)
{
	struct box *box = context;

	exec_gate_over(box->gates.exec, token);
}

static int on_unheld(void *context, uint64_t token, pid_t pid, int errnum)
{
	struct box *box = context;

	return exec_gate_unheld(box->gates.exec, token, pid, errnum);
}

static int on_gate(void *context, const struct watch_network *event)
{
	struct box *box = context;

	return gate_judge(&box->gates.net, event);
}

static bool is_gate_behind(void *context)
{
	const struct box *box = context;

	return gate_is_behind(&box->gates.net);
}

static int on_gated(void *context, pid_t pid, const struct sockaddr *source, const struct sockaddr *target)
{
	struct box *box = context;

	return gate_route(&box->gates.net, pid, source, target);
}

static int on_file(void *context, const struct watch_file *event)
{
	struct box *box = context;

	return file_gate_judge(&box->gates.file, event);
}

static int on_file_asks(void *context, const struct watch_file *event)
{
	struct box *box = context;

	return file_gate_ask(&box->gates.file, event);
}

static int on_file_done(void *context, const struct watch_file *event)
{
	struct box *box = context;

	return file_gate_record(&box->gates.file, event);
}

static void on_file_gone(void *context, uint64_t id)
{
	struct box *box = context;

	file_gate_gone(&box->gates.file, id);
}

static int on_move(void *context, const struct watch_move *event)
{
	struct box *box = context;

	return move_begin(&box->gates.moves, event);
}

static int on_moved(void *context, const struct watch_move *event)
{
	struct box *box = context;

	return move_find(&box->gates.moves, event);
}

static void on_link(void *context)
{
	staging_note_link(&((struct box *)context)->build.staging);
}

static bool on_unheard(void *context, const char *path)
{
	struct box *box = context;

	return !box->gates.request && access_gate_is_wanted(&box->run, path) &&
	       access_gate_open(&box->gates.request, &box->run, &box->approval.mounts, &box->approval.queue);
}

int events_watch_new(struct box *box, int listener_fd)
{
	struct watch_handlers handlers = {
		.on_exec = on_exec,
		.on_image = on_image,
		.on_over = on_over,
		.on_unheld = on_unheld,
		.on_refusal = on_refusal,
		.on_network = on_network,
		.on_gate = on_gate,
		.is_gate_behind = is_gate_behind,
		.on_gated = on_gated,
		.on_file = on_file,
		.on_file_asks = on_file_asks,
		.on_file_done = on_file_done,
		.on_file_gone = on_file_gone,
		.on_move = on_move,
		.on_moved = on_moved,
		.on_link = on_link,
		.on_unheard = on_unheard,
		.context = box,
	};
	int r;

	box->supervision.processes.loop = box->run.loop;
	box->supervision.processes.on_end = on_process_end;
	box->supervision.processes.context = box;
	r = watch_new(&box->run.watch, listener_fd, &box->build.watch_options, &handlers, box->run.err);
	if (r < 0)
		return r;
	box->serving.watch_source = (struct loop_source){
		.fd = watch_fd(box->run.watch),
		.events = 1 /* EPOLLIN */,
		.ready = serve_watch,
		.context = box,
	};
	box->serving.listener_source = box->serving.watch_source;
	r = watch_attend(box->run.watch, box->run.loop->epoll_fd, &box->serving.listener_source.fd);
	if (r < 0)
		return err_set(box->run.err, ERR_INTERNAL, -r, "seccomp", "epoll: %s", err_errno_name(-r));
	loop_add_first(box->run.loop, &box->serving.listener_source);
	return loop_add(box->run.loop, &box->serving.watch_source);
}
