/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-exec/gate.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "approve/queue.h"
#include "approve/reviewer.h"
#include "base/json.h"
#include "base/str.h"
#include "gate-exec/case.h"
#include "gate-exec/decide.h"
#include "gate-exec/dry-run.h"
#include "gate-exec/judge.h"
#include "gate-exec/log.h"
#include "gate-exec/programs.h"
#include "gate-exec/verifier.h"
#include "os/proc.h"
#include "policy/decide-exec.h"
#include "supervise/rate.h"
#include "supervise/run.h"

/*
 * An exec is judged twice. When it is asked for, by what its path leads to and by the arguments as they are in memory:
 * that can still be refused with an errno, and a person can be asked. Both can be another by the time that the kernel
 * reads them, so nothing rests on it: the exec is held (watch/exec-stop.h), and when the new program is there, what the
 * process executes, and the arguments it was given, are judged again (exec-stop.c). What is not allowed is killed
 * before its first instruction. A failing first judgement is an early answer; the second one is the wall.
 *
 * A script is a program too: it is judged with its interpreters when it is asked for. Afterwards the interpreter alone
 * can be told for sure: it opens the script itself, by a path, as it opens any other file that it is given.
 */

enum { FINDINGS_SIZE = 16 << 10 };

/* ---- the end of a case ---- */

static struct exec_entry entry_of(const struct watch_exec *exec)
{
	return (struct exec_entry){ exec->pid, exec->exe, exec->argv, exec, exec->argv_left_out };
}

/* Its caller's memory is not looked at once more: what people and the external verifier were shown is written down. */
static struct exec_entry entry_shown(const struct exec_case *at, char **argv)
{
	return (struct exec_entry){ at->pid, at->exe, (const char *const *)argv };
}

static int log_decision(struct exec_gate *gate, const struct exec_case *at, const struct exec_entry *entry)
{
	bool is_allowed = at->decision.verdict != VERDICT_DENY;

	exec_dry_run_decided(gate->trials, at->trial, is_allowed);
	return is_allowed ? exec_log_start(gate, entry, &at->decision) : exec_log_refusal(gate, entry, &at->decision);
}

/* Takes the case. ret_answer NULL: the watch waits for it. */
static int deliver(struct exec_gate *gate, struct exec_case *at, struct watch_exec_answer *ret_answer)
{
	int errnum = at->errnum ? at->errnum : at->decision.verdict == VERDICT_DENY ? EACCES : 0;
	bool is_held = !errnum && gate->judges_programs;
	struct watch_exec_answer answer = { .errnum = errnum, .is_held = is_held, .token = at->token };
	uint64_t id = at->id;
	pid_t pid = at->pid;

	at->stage = EXEC_HELD;
	if (!is_held)
		exec_drop_case(gate, at);
	if (!ret_answer)
		return watch_answer_exec(gate->in.run->watch, id, pid, &answer);
	*ret_answer = answer;
	return 0;
}

/* ---- its stages ---- */

/*
 * 0: at->stage is the next one; 1: the case waits in its stage, for find_waiting(); negative: the log failed, or memory
 * is short. exec is NULL from EXEC_REVIEW on.
 */
typedef int exec_step(struct exec_gate *gate, struct exec_case *at, const struct watch_exec *exec);

static exec_step step_verify, step_dry_run, step_judge, step_review, step_ask;

static exec_step *const steps[EXEC_DECIDED] = {
	[EXEC_VERIFY] = step_verify, [EXEC_DRY_RUN] = step_dry_run, [EXEC_JUDGE] = step_judge,
	[EXEC_REVIEW] = step_review, [EXEC_ASK] = step_ask,
};

/* Takes the case as far as it can go now. entry: what is written down of it; ret_answer NULL: the watch waits. */
static int advance(struct exec_gate *gate, struct exec_case *at, struct exec_entry entry,
		   struct watch_exec_answer *ret_answer)
{
	int r = 0;

	at->is_waiting = false;
	while (r == 0 && at->stage < EXEC_DECIDED)
		r = steps[at->stage](gate, at, entry.exec);
	at->is_waiting = r == 1;
	if (ret_answer)
		ret_answer->is_later = r == 1;
	if (r)
		return r < 0 ? r : 0;
	entry.is_verifier_refusal = at->is_verifier_refusal;
	r = at->errnum ? 0 : log_decision(gate, at, &entry);
	return r < 0 ? r : deliver(gate, at, ret_answer);
}

/* The case that waits in this stage under this token. */
static struct exec_case *find_waiting(const struct exec_gate *gate, uint64_t token, enum exec_stage stage)
{
	struct exec_case *at = exec_case_find(&gate->cases, token);

	return at && at->is_waiting && at->stage == stage ? at : NULL;
}

/* Drops a case whose caller waits no more. */
static bool is_abandoned(struct exec_gate *gate, struct exec_case *at)
{
	if (watch_is_awaited(gate->in.run->watch, at->id))
		return false;
	exec_drop_case(gate, at);
	return true;
}

/* ---- what the command would do ---- */

static int step_verify(struct exec_gate *gate, struct exec_case *at, const struct watch_exec *exec)
{
	int r = exec_case_keep(at, exec);

	if (r == 0)
		r = verifier_ask(gate->verify, exec, at->token, &at->verified->outcome, &at->errnum);
	if (r == 0)
		at->stage = at->errnum ? EXEC_DECIDED : EXEC_DRY_RUN;
	return r;
}

static int step_dry_run(struct exec_gate *gate, struct exec_case *at, const struct watch_exec *exec)
{
	struct verify_outcome *outcome = &at->verified->outcome;
	int r = outcome->action == VERIFY_DRY_RUN ? exec_dry_run_ask(gate->trials, exec, at->token, outcome, &at->trial)
		: 0;

	if (r == 0)
		at->stage = EXEC_JUDGE;
	return r;
}

/* Its outcome is known, and stands in the case. */
static int resume_at(struct exec_gate *gate, struct exec_case *at, enum exec_stage next)
{
	struct watch_exec exec;

	if (is_abandoned(gate, at))
		return 0;
	exec = exec_case_kept(at);
	at->stage = next;
	return advance(gate, at, entry_of(&exec), NULL);
}

static int verified(void *context, uint64_t token, const struct verify_outcome *outcome)
{
	struct exec_gate *gate = context;
	struct exec_case *at = find_waiting(gate, token, EXEC_VERIFY);

	if (!at)
		return 0;
	at->verified->outcome = *outcome;
	return resume_at(gate, at, EXEC_DRY_RUN);
}

static int tried(void *context, uint64_t token)
{
	struct exec_gate *gate = context;
	struct exec_case *at = find_waiting(gate, token, EXEC_DRY_RUN);

	if (!at || !exec_dry_run_find(gate->trials, token, &at->verified->outcome, &at->trial))
		return 0;
	return resume_at(gate, at, EXEC_JUDGE);
}

/* ---- the policy ---- */

static int step_judge(struct exec_gate *gate, struct exec_case *at, const struct watch_exec *exec)
{
	int r = exec_judge(gate, at, exec);

	at->stage = at->errnum ? EXEC_DECIDED : EXEC_REVIEW;
	return r;
}

/* ---- a second opinion ---- */

/* What the rules said, tightened. */
static int tighten(struct exec_case *at, const struct reviewer_opinion *opinion)
{
	struct decision ask = { VERDICT_ASK, { "verify.external", "", 0 }, at->review.opinion, "", NULL };

	at->review.has_opinion = true;
	if (str_format(at->review.opinion, sizeof at->review.opinion, "the external verifier %s: %s",
		       opinion->verdict == JUDGE_DENY ? "refused it" : "is not sure", opinion->reason) < 0)
		memcpy(at->review.opinion, "the external verifier", sizeof "the external verifier");
	at->review.is_denied = opinion->verdict == JUDGE_DENY;
	if (at->review.is_denied)
		at->decision = (struct decision){ VERDICT_DENY, { "verify.external", "", 0 }, at->review.opinion,
						  "do what the task needs in another way, or ask the person", NULL };
	if (opinion->verdict != JUDGE_UNCLEAR || at->decision.verdict == VERDICT_ASK)
		return 0;
	at->decision = ask;
	return exec_case_want(at, at->review.path, (const char *const *)at->review.argv, &ask);
}

/* Whether a verifier refused it, and not a rule about programs, a person, or that nobody could judge it. */
static bool is_refused_by_verifier(const struct exec_case *at)
{
	const struct verify_outcome *outcome = at->verified ? &at->verified->outcome : NULL;

	if (at->decision.verdict != VERDICT_DENY)
		return false;
	return at->review.is_denied || (outcome && outcome->action >= VERIFY_DRY_RUN && !outcome->is_unknown &&
				 str_equal(at->decision.rule.id, outcome->id));
}

static void end_review(struct exec_case *at)
{
	at->is_verifier_refusal = is_refused_by_verifier(at);
	at->stage = at->decision.verdict == VERDICT_DENY ? EXEC_DECIDED : EXEC_ASK;
}

static int reviewed(void *context, uint64_t token, const struct reviewer_opinion *opinion)
{
	struct exec_gate *gate = context;
	struct exec_case *at = find_waiting(gate, token, EXEC_REVIEW);
	int r;

	if (!at || is_abandoned(gate, at))
		return 0;
	r = tighten(at, opinion);
	if (r < 0)
		return r;
	end_review(at);
	return advance(gate, at, entry_shown(at, at->review.argv), NULL);
}

static struct reviewer_waiter review_waiter(struct exec_gate *gate, const struct exec_case *at)
{
	return (struct reviewer_waiter){ reviewed, gate, at->token };
}

/* What atoll-verify found, of which the box keeps the worst. */
static void put_findings(const struct exec_case *at, struct buf *out)
{
	const struct verify_outcome *outcome = at->verified ? &at->verified->outcome : NULL;
	struct json json;

	json_init(&json, out);
	json_array_begin(&json, NULL);
	if (outcome && outcome->action != VERIFY_OFF) {
		json_object_begin(&json, NULL);
		json_string(&json, "id", outcome->id);
		json_string(&json, "reason", outcome->reason);
		json_string(&json, "action", verify_action_names[outcome->action]);
		json_object_end(&json);
	}
	json_array_end(&json);
}

/* As a step. */
static int begin_review(struct exec_gate *gate, struct exec_case *at)
{
	struct reviewer_waiter waiter = review_waiter(gate, at);
	struct reviewer_opinion opinion;
	char program[PATH_MAX], findings[FINDINGS_SIZE];
	struct buf found;
	struct reviewer_request request = {
		.action = { .kind = ACTION_EXEC, .subject = at->review.path,
			    .argv = (const char *const *)at->review.argv },
		.verdict = at->decision.verdict, .rule = at->decision.rule.id, .pid = at->pid, .cwd = at->cwd,
		.program = exec_caller_link(at->pid, "exe", program) < 0 ? NULL : program,
	};
	int r;

	buf_init_fixed(&found, findings, sizeof findings);
	put_findings(at, &found);
	request.findings = buf_error(&found) ? "[{\"id\":\"verify.unknown\"}]" : buf_text(&found);
	r = reviewer_begin(gate->in.reviewer, &request, &waiter, &opinion);
	return r ? r : tighten(at, &opinion);
}

static int step_review(struct exec_gate *gate, struct exec_case *at, const struct watch_exec *exec)
{
	int r = at->review.path && reviewer_wants(gate->in.reviewer, at->decision.verdict) ? begin_review(gate, at) : 0;

	(void)exec;
	if (r == 0)
		end_review(at);
	return r;
}

/* ---- asking ---- */

static int answered(void *context, uint64_t token, const struct queue_outcome *outcome)
{
	struct exec_gate *gate = context;
	struct exec_case *at = find_waiting(gate, token, EXEC_ASK);

	if (!at)
		return 0;
	at->outcome = *outcome;
	at->granted_count += outcome->verdict == QUEUE_ALLOWED;
	at->is_answered = true;
	return advance(gate, at, entry_shown(at, at->wants[0].argv), NULL);
}

/* Whether the caller died while a person was asked: then nothing is left of its exec. */
static bool is_gone(void *context, uint64_t token)
{
	struct exec_gate *gate = context;
	struct exec_case *at = exec_case_find(&gate->cases, token);
	struct queue_waiter waiter = { .done = answered, .context = gate, .token = token };
	struct queue_outcome outcome;

	if (watch_is_awaited(gate->in.run->watch, at->id))
		return false;
	/* A signal that interrupted the call takes nobody's answer away: it is made again. What fails with the log is
	 * heard by all who use it next. */
	if (proc_is_over(at->pid) && queue_give_up(gate->in.queue, &waiter, &outcome) > 0) {
		struct exec_entry entry = entry_shown(at, at->wants[0].argv);

		at->decision = exec_decision_of(&outcome);
		(void)!log_decision(gate, at, &entry);
	}
	exec_drop_case(gate, at);
	return true;
}

/* 0: at->outcome is the answer to the next question; 1: answered() will be called. */
static int ask_next(struct exec_gate *gate, struct exec_case *at)
{
	const struct exec_want *want = &at->wants[at->granted_count];
	struct queue_waiter waiter = { .done = answered, .is_gone = is_gone, .context = gate, .token = at->token };
	char program[PATH_MAX];
	struct queue_request request = {
		.action = { .kind = ACTION_EXEC, .subject = want->path, .argv = (const char *const *)want->argv },
		.decision = want->decision,
		.pid = at->pid,
		.actor = {
			.program = exec_caller_link(at->pid, "exe", program) < 0 ? NULL : program,
			.cwd = at->cwd,
		},
	};

	return queue_begin(gate->in.queue, &request, &waiter, &at->outcome);
}

/* Until somebody has to be waited for, or all is granted or one thing refused. */
static int step_ask(struct exec_gate *gate, struct exec_case *at, const struct watch_exec *exec)
{
	int r = 0;

	(void)exec;
	while (r == 0 && at->outcome.verdict == QUEUE_ALLOWED && at->granted_count < at->want_count) {
		r = ask_next(gate, at);
		at->granted_count += r == 0 && at->outcome.verdict == QUEUE_ALLOWED;
	}
	if (r)
		return r;
	if (at->is_answered || at->decision.verdict == VERDICT_ASK)
		at->decision = exec_decision_of(&at->outcome);
	at->stage = EXEC_DECIDED;
	return 0;
}

/* ---- the life of the gate ---- */

int exec_gate_prepare(struct exec_gate **ret_gate, const struct exec_gate_input *in, const uint32_t *taken,
		      size_t taken_count)
{
	const struct policy *policy = in->run->policy->policy;
	struct exec_gate *gate = calloc(1, sizeof *gate);
	int r;

	if (!gate)
		return -ENOMEM;
	gate->in = *in;
	/* To execute a file is to read it. */
	gate->judges_programs = policy_judges_programs(policy) || policy_gates_reads(policy);
	gate->judges_arguments = policy_judges_arguments(policy);
	gate->verifies = policy_verifies(policy);
	r = gate->judges_programs ? programs_new(&gate->programs, policy, taken, taken_count) : 0;
	if (r < 0) {
		free(gate);
		return r;
	}
	*ret_gate = gate;
	return 0;
}

int exec_gate_prepare_verifier(struct exec_gate *gate)
{
	const struct verifier_owner of_verifier = { verified, gate };
	const struct exec_dry_run_owner of_trials = { tried, gate };
	int r = verifier_prepare(&gate->verify, gate->in.run, &of_verifier);

	if (r < 0 || !gate->verify)
		return r;
	gate->trials = exec_dry_runs_new(gate->in.run, gate->in.staging, &of_trials);
	return gate->trials ? 0 : -ENOMEM;
}

int exec_gate_enter(struct exec_gate *gate)
{
	const struct run *run = gate->in.run;

	return gate->programs ? programs_enter(gate->programs, run->policy->policy, run->identity->root_fd) : 0;
}

int exec_gate_judge(struct exec_gate *gate, const struct watch_exec *exec, struct watch_exec_answer *ret_answer)
{
	static const struct decision unjudged = { VERDICT_ALLOW, { "exec.default", "", 0 }, "", "", NULL };
	struct exec_entry entry = entry_of(exec);
	struct exec_case *at;
	struct decision refused;
	int r = rate_take(gate->in.run, RATE_EXEC);

	if (r) {
		ret_answer->errnum = EAGAIN;
		return r < 0 ? r : 0;
	}
	if (exec_place_refuses(gate, exec, &refused)) {
		ret_answer->errnum = EACCES;
		return exec_log_refusal(gate, &entry, &refused);
	}
	if (!gate->judges_programs && !gate->verifies)
		return exec_log_start(gate, &entry, &unjudged);
	at = exec_case_new(&gate->cases, exec, gate->verifies ? EXEC_VERIFY : EXEC_JUDGE);
	return at ? advance(gate, at, entry, ret_answer) : -ENOMEM;
}

int exec_gate_release(struct exec_gate *gate)
{
	struct exec_case *next;
	int r = 0;

	for (struct exec_case *at = gate ? gate->cases.first : NULL; at && r == 0; at = next) {
		struct reviewer_waiter waiter = review_waiter(gate, at);

		next = at->next;
		if (!at->is_waiting)
			continue;
		if (at->stage == EXEC_ASK)
			queue_forget(gate->in.queue, &(struct queue_waiter){ .done = answered, .context = gate, .token =
				at->token });
		verifier_forget(gate->verify, at->token);
		reviewer_forget(gate->in.reviewer, &waiter);
		r = watch_restart_exec(gate->in.run->watch, at->id, at->pid);
		exec_dry_run_release(gate->trials, at->token);
		exec_drop_case(gate, at);
	}
	return r;
}

const struct verifier_noted *exec_gate_noted(const struct exec_gate *gate)
{
	return gate ? verifier_noted(gate->verify) : NULL;
}

void exec_gate_close(struct exec_gate *gate)
{
	if (!gate)
		return;
	exec_dry_run_done(gate->trials);
	gate->trials = NULL;
	verifier_close(gate->verify);
}

void exec_gate_free(struct exec_gate *gate)
{
	if (!gate)
		return;
	while (gate->cases.first)
		exec_case_free(&gate->cases, gate->cases.first);
	programs_free(gate->programs);
	verifier_free(gate->verify);
	free(gate);
}
