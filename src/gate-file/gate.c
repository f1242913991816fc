/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-file/gate.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>

#include "approve/queue.h"
#include "base/str.h"
#include "build/disk-full.h"
#include "grant/runtime-mount.h"
#include "os/fd.h"
#include "os/identity.h"
#include "os/path.h"
#include "os/proc.h"
#include "supervise/hub.h"
#include "supervise/refusals.h"
#include "supervise/run.h"

/*
 * Theory of operation. What a path is to the sandbox the mounts have settled already; here falls what they cannot
 * express. So the gate refuses a masked path, and leaves the rest to the kernel, whose refusal it explains with the
 * policy's rule. A path that is not there is a refusal too, where the policy hides it.
 */

enum { PROGRAM_MAX = 400 };

static void file_gate_done(void *context)
{
	struct file_gate *gate = context;

	for (size_t i = 0; i < gate->question_count; i++)
		free(gate->questions[i].path);
	free(gate->questions);
	gate->questions = NULL;
	gate->question_count = 0;
	file_log_done(&gate->log);
}

int file_gate_flush(struct file_gate *gate, bool is_last)
{
	return file_log_flush(&gate->log, gate->run->audit, is_last);
}

/* ---- decisions ---- */

static const enum audit_type types[] = {
	[WATCH_FILE_READ] = AUDIT_FILE_OPEN,
	[WATCH_FILE_WRITE] = AUDIT_FILE_WRITE,
	[WATCH_FILE_REMOVE] = AUDIT_FILE_REMOVE,
	[WATCH_FILE_RENAME] = AUDIT_FILE_RENAME,
};

static enum action_kind kind_of(const struct watch_file *event)
{
	return event->access == WATCH_FILE_READ ? ACTION_FILE_READ : ACTION_FILE_WRITE;
}

static struct decision decide(const struct file_gate *gate, const struct watch_file *event, const char *path)
{
	struct action action = { .kind = kind_of(event), .subject = path };

	return policy_decide(gate->run->policy->policy, &action);
}

static struct file_note note_of(const struct watch_file *event, enum verdict verdict, const char *rule, int errnum)
{
	return (struct file_note){
		.type = types[event->access], .verdict = verdict, .pid = event->pid, .call = event->call,
		.rule = rule, .flags = event->flags, .errnum = errnum,
	};
}

/* The errno, or negative: the log failed. */
static int refuse(struct file_gate *gate, const struct watch_file *event, const char *path,
		  const struct decision *decision,
		  int errnum)
{
	struct action action = { .kind = kind_of(event), .subject = path };
	struct file_note fresh = note_of(event, VERDICT_DENY, decision->rule.id, errnum);
	int r = file_log_add(&gate->log, gate->run->audit, &fresh, event);

	gate->run->refusals->denied++;
	/* What follows may write the trust record or start a program: that is nothing for the sandbox's ids. */
	identity_return();
	/* To look for credentials where there are none to be seen is looking for them. */
	if (r == 0 && event->access == WATCH_FILE_READ)
		r = hub_publish(gate->run->hub, EVENT_FILE, &(struct event_file){ event, false });
	if (r == 0)
		r = denials_add(&gate->run->refusals->denials, &action, decision, 0);
	if (r == 0)
		r = rate_refused(gate->run);
	return r < 0 ? r : errnum;
}

/*
 * A protected name that is read-only in a tree which is written in place: a mount holds it where it exists, and nothing
 * else where it does not.
 */
static bool is_missing_guard(const struct file_gate *gate, const struct watch_file *event, const char *path,
			     const struct decision *decision)
{
	const struct policy *policy = gate->run->policy->policy;

	return event->access != WATCH_FILE_READ && decision->verdict == VERDICT_DENY && policy_gates_writes(policy) &&
	       policy_classify(policy, path, &(size_t){ 0 }) == FILE_READ &&
	       policy_find_protect(policy, path, PATH_BUILD | PATH_PACKAGE);
}

/*
 * Where calls come by here for the sake of protected names alone, a mask in a staged tree is its layer's as without
 * that: what is made there is staged, and never applied.
 */
static bool is_masked_by_layer(const struct file_gate *gate, const char *path)
{
	const struct policy *policy = gate->run->policy->policy;
	char above[PATH_MAX];
	enum file_class class = FILE_MASK;

	if (policy->audit.files != AUDIT_OFF || policy_gates_reads(policy) || str_copy(above, sizeof above, path) < 0)
		return false;
	while (class == FILE_MASK && strrchr(above, '/') > above) {
		*strrchr(above, '/') = 0;
		class = policy_classify(policy, above, &(size_t){ 0 });
	}
	return class == FILE_STAGE;
}

/* A masked name looks absent to who reads, and cannot be made. */
static int judge_path(struct file_gate *gate, const struct watch_file *event, const char *path)
{
	struct decision decision;

	/* It is shown in the place of what is hidden there; what is hidden there is not written to for that. */
	if (event->access == WATCH_FILE_READ && gate->is_planted(gate->planted, path))
		return 0;
	decision = decide(gate, event, path);
	if (path == event->path) {
		gate->judged_id = event->id;
		gate->judged = decision;
	}
	if (decision.verdict == VERDICT_ASK)
		return WATCH_FILE_ASKS;
	if (decision.is_masked ? is_masked_by_layer(gate, path) : !is_missing_guard(gate, event, path, &decision))
		return 0;
	return refuse(gate, event, path, &decision,
		      event->access == WATCH_FILE_READ || event->access == WATCH_FILE_REMOVE ? ENOENT : EACCES);
}

int file_gate_judge_owner(struct file_gate *gate, enum watch_file_access access, const char *path)
{
	const struct watch_file event = { .access = access, .path = path, .call = "owner" };
	struct decision decision = decide(gate, &event, path);

	if (access != WATCH_FILE_READ && disk_refuses(gate->disk, &event))
		return ENOSPC;
	if (access == WATCH_FILE_READ && gate->is_planted(gate->planted, path))
		return 0;
	if (decision.verdict == VERDICT_ASK)
		return EACCES;
	if (decision.is_masked ? is_masked_by_layer(gate, path) : !is_missing_guard(gate, &event, path, &decision))
		return 0;
	return access == WATCH_FILE_READ || access == WATCH_FILE_REMOVE ? ENOENT : EACCES;
}

/* Of a directory, more is renamed than its name. */
static int judge_move(struct file_gate *gate, const struct watch_file *event)
{
	const struct policy *policy = gate->run->policy->policy;
	struct decision decision = policy_decide_move(policy, event->path, event->target);
	struct decision target = decide(gate, event, event->target);

	/* An apply would take the old directory away and leave the new one out. */
	if (target.is_masked)
		return refuse(gate, event, event->target, &target, EACCES);
	if (decision.verdict == VERDICT_ALLOW && event->is_exchange)
		decision = policy_decide_move(policy, event->target, event->path);
	return decision.verdict == VERDICT_ALLOW ? 0 : refuse(gate, event, event->path, &decision, EACCES);
}

/* How long a pause is stands in a file, which must be there to be read meanwhile. */
static bool tells_the_agent(const struct watch_file *event)
{
	return event->access == WATCH_FILE_READ && path_is_below(event->path, "/run/atoll");
}

static int take_rate(struct file_gate *gate, const struct watch_file *event)
{
	if (tells_the_agent(event))
		return 0;
	return rate_take(gate->run, event->access == WATCH_FILE_READ ? RATE_FILE_READ : RATE_FILE_WRITE);
}

int file_gate_judge(struct file_gate *gate, const struct watch_file *event)
{
	int r = take_rate(gate, event);
	int first, second = 0;

	if (r)
		return r < 0 ? r : EAGAIN;
	/* What it costs to say so is paid by those alone whose calls come by here anyway. */
	if (disk_refuses(gate->disk, event))
		return ENOSPC;
	first = judge_path(gate, event, event->path);
	if (event->target && (first == 0 || first == WATCH_FILE_ASKS))
		second = judge_path(gate, event, event->target);
	if (event->is_directory && (first == 0 || first == WATCH_FILE_ASKS) &&
	    (second == 0 || second == WATCH_FILE_ASKS)) {
		int moved = judge_move(gate, event);

		if (moved)
			return moved;
	}
	return second ? second : first;
}

/* ---- questions ---- */

static struct file_question *find_question(struct file_gate *gate, uint64_t id, const char *path)
{
	for (size_t i = 0; i < gate->question_count; i++)
		if (gate->questions[i].id == id && (!path || str_equal(gate->questions[i].path, path)))
			return &gate->questions[i];
	return NULL;
}

static struct file_question *add_question(struct file_gate *gate, const struct watch_file *event, const char *path)
{
	struct file_question *question;

	if (!gate->questions)
		gate->questions = calloc(FILE_QUESTIONS_MAX, sizeof *gate->questions);
	if (!gate->questions || gate->question_count == FILE_QUESTIONS_MAX)
		return NULL;
	question = &gate->questions[gate->question_count];
	*question = (struct file_question){ .id = event->id, .path = str_dup(path), .access = event->access,
					    .call = event->call, .pid = event->pid };
	if (!question->path)
		return NULL;
	gate->question_count++;
	return question;
}

static int on_answer(void *context, uint64_t token, const struct queue_outcome *outcome);

static void forget_questions(struct file_gate *gate, uint64_t id)
{
	struct file_question *question;

	while ((question = find_question(gate, id, NULL))) {
		free(question->path);
		*question = gate->questions[--gate->question_count];
	}
}

/* What the person said is not a rule of the policy: the denial tells it in their words. */
static int refuse_by_answer(struct file_gate *gate, const struct watch_file *event, const char *path,
		  const struct queue_outcome *outcome)
{
	struct decision decision = { VERDICT_DENY, outcome->rule, outcome->reason, outcome->hint, NULL, false };

	return refuse(gate, event, path, &decision, EACCES);
}

/* What a caller that died still waited for, it was refused. */
static void refuse_left(struct file_gate *gate, const struct file_question *question, const struct queue_waiter *waiter)
{
	struct watch_file event = { .id = question->id, .pid = question->pid, .call = question->call,
				    .access = question->access, .path = question->path };
	struct queue_outcome outcome;

	/* What fails with the log is heard by all who use it next. */
	if (queue_give_up(gate->queue, waiter, &outcome) > 0)
		(void)!refuse_by_answer(gate, &event, question->path, &outcome);
}

void file_gate_gone(struct file_gate *gate, uint64_t id)
{
	struct queue_waiter waiter = { .done = on_answer, .context = gate, .token = id };

	/* A signal that interrupted the call takes nobody's answer away: it is made again. */
	for (size_t i = 0; i < gate->question_count; i++)
		if (gate->questions[i].id == id && !gate->questions[i].is_answered &&
		    proc_is_over(gate->questions[i].pid))
			refuse_left(gate, &gate->questions[i], &waiter);
	queue_forget(gate->queue, &waiter);
	forget_questions(gate, id);
}

void file_gate_end(struct file_gate *gate)
{
	while (gate->question_count)
		file_gate_gone(gate, gate->questions[0].id);
}

static void keep_answer(struct file_question *question, const struct queue_outcome *outcome)
{
	question->is_answered = true;
	question->is_allowed = outcome->verdict == QUEUE_ALLOWED;
	if (str_format(question->rule, sizeof question->rule, "%.*s", (int)sizeof question->rule - 1,
		       outcome->rule.id) < 0)
		question->rule[0] = 0;
}

/* What the sandbox has at a path of its own is not taken away by what the host has there. */
static bool is_missing(const struct file_gate *gate, const char *path)
{
	cleanup_fd int fd = path_open2(gate->run->identity->root_fd, path, O_PATH | O_NOFOLLOW, 0,
				       RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);

	return fd == -ENOENT || fd == -ENOTDIR;
}

/* Whether the view lacks it, so that a yes brings it in: what it is by now is what is asked about. */
static bool lies_outside(struct file_gate *gate, const struct watch_file *event, const char *path)
{
	struct runtime_mount_object object;

	return !runtime_mount_has(gate->mounts, path, event->access != WATCH_FILE_READ) && is_missing(gate, path) &&
	       runtime_mount_show(gate->mounts, path, &object) == 0 && object.is_found && str_equal(object.path, path);
}

/* It was allowed before anybody had to be asked, and is brought in now: the call is made again. */
static int retry_call(struct file_gate *gate, const struct watch_file *event, struct file_question *question,
		 const struct queue_outcome *outcome)
{
	struct action action = { .kind = kind_of(event), .subject = question->path };
	struct err err;
	int r = queue_bring_in(gate->queue, &action, outcome, &err);

	if (r)
		return r < 0 ? r : 0;
	question->is_due = true;
	return WATCH_FILE_WAITS;
}

/* Asks about one path. 0: allowed; as file_gate_ask(). */
static int ask_about(struct file_gate *gate, const struct watch_file *event, const char *path)
{
	struct file_question *question = find_question(gate, event->id, path);
	char program[PROGRAM_MAX];
	struct queue_request request = {
		.action = { .kind = kind_of(event), .subject = path },
		.decision = decide(gate, event, path),
		.pid = event->pid,
		.actor.program = program,
	};
	struct queue_waiter waiter = { .done = on_answer, .context = gate, .token = event->id };
	struct queue_outcome outcome;
	bool is_outside;
	int r;

	if (request.decision.verdict != VERDICT_ASK || (question && question->is_allowed))
		return 0;
	if (question && question->is_answered) {
		outcome = (struct queue_outcome){ .rule = { question->rule, "", 0 },
						   .reason = "a person refused it, or did not answer", .hint = "" };
		return refuse_by_answer(gate, event, path, &outcome);
	}
	if (!question)
		question = add_question(gate, event, path);
	if (!question)
		return ENFILE;
	file_log_program(event->pid, program, sizeof program);
	is_outside = lies_outside(gate, event, path);
	request.flags = is_outside ? GRANT_OUTSIDE : 0;
	r = queue_begin(gate->queue, &request, &waiter, &outcome);
	if (r == 1)
		return WATCH_FILE_WAITS;
	if (r < 0)
		return r;
	keep_answer(question, &outcome);
	if (!question->is_allowed)
		return refuse_by_answer(gate, event, path, &outcome);
	return is_outside ? retry_call(gate, event, question, &outcome) : 0;
}

int file_gate_ask(struct file_gate *gate, const struct watch_file *event)
{
	int r = ask_about(gate, event, event->path);

	if (r == 0 && event->target)
		r = ask_about(gate, event, event->target);
	if (r != 0 && r != WATCH_FILE_WAITS)
		forget_questions(gate, event->id);
	return r;
}

/* It may come while another call is judged: what follows from it is file_gate_check()'s. */
static int on_answer(void *context, uint64_t token, const struct queue_outcome *outcome)
{
	struct file_gate *gate = context;

	for (size_t i = 0; i < gate->question_count; i++)
		if (gate->questions[i].id == token && !gate->questions[i].is_answered) {
			keep_answer(&gate->questions[i], outcome);
			gate->questions[i].is_due = true;
		}
	return 0;
}

/* Each is judged anew: the caller's memory may show another path by now, which the answer is not about. */
static int file_gate_check(void *context, uint64_t now_ns)
{
	struct file_gate *gate = context;
	int r = 0;

	for (size_t i = 0; r >= 0 && gate->run->watch && i < gate->question_count; i++) {
		if (!gate->questions[i].is_due)
			continue;
		gate->questions[i].is_due = false;
		r = watch_file_retry(gate->run->watch, gate->questions[i].id);
		i = SIZE_MAX; /* from the start: they have moved */
	}
	return r < 0 ? r : 0;
}

/* ---- what was done ---- */

static bool is_refusal(int errnum)
{
	return errnum == EACCES || errnum == EPERM || errnum == EROFS;
}

static bool is_wanted(const struct policy *policy, const struct watch_file *event)
{
	return policy->audit.files == AUDIT_ALL ||
	       (policy->audit.files == AUDIT_WRITES && event->access != WATCH_FILE_READ);
}

/* By which rule, and as what, something is written down that was not refused. */
static struct file_note note_of_success(struct file_gate *gate, const struct watch_file *event,
					const struct decision *decision)
{
	const struct file_question *question = find_question(gate, event->id, event->path);

	if (question)
		return note_of(event, VERDICT_ALLOW, question->rule, 0);
	/* What is there although no rule lists it, the sandbox brought along. */
	if (decision->verdict == VERDICT_DENY)
		return note_of(event, VERDICT_ALLOW, "builtin.jail", 0);
	return note_of(event, decision->verdict, decision->rule.id, 0);
}

static int record(struct file_gate *gate, const struct watch_file *event)
{
	/* What it was judged by a moment ago. */
	bool is_judged = gate->judged_id == event->id;
	struct decision decision = is_judged ? gate->judged : decide(gate, event, event->path);
	bool is_denied = decision.verdict == VERDICT_DENY;
	struct file_note fresh;
	int r;

	if (is_refusal(event->errnum) && is_denied) {
		r = refuse(gate, event, event->path, &decision, event->errnum);
		return r < 0 ? r : 0;
	}
	gate->run->refusals->allowed += !event->errnum;
	/* What is hidden is not there: that is a refusal too. */
	if (!is_wanted(gate->run->policy->policy, event) ||
	    (event->errnum == ENOENT ? !is_denied : event->errnum && !is_refusal(event->errnum)))
		return 0;
	fresh = event->errnum ? note_of(event, VERDICT_DENY, is_denied ? decision.rule.id : "", event->errnum) :
				note_of_success(gate, event, &decision);
	return file_log_add(&gate->log, gate->run->audit, &fresh, event);
}

int file_gate_record(struct file_gate *gate, const struct watch_file *event)
{
	const struct event_file done = { event, !event->errnum && file_log_is_open(event->call) };
	int r = record(gate, event);

	if (r == 0)
		r = hub_publish(gate->run->hub, EVENT_FILE, &done);
	forget_questions(gate, event->id);
	return r;
}

const struct module file_gate_module = {
	.name = "gate-file",
	.checks_when_ended = true,
	.check = file_gate_check,
	.done = file_gate_done,
};
