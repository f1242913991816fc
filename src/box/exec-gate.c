/* SPDX-License-Identifier: Apache-2.0 */
#include "box/exec-gate.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "box/asking.h"
#include "box/exec-case.h"
#include "box/exec-file.h"
#include "box/exec-judge.h"
#include "box/exec-log.h"
#include "box/exec-trial.h"
#include "box/exec-words.h"
#include "box/programs.h"
#include "box/rate.h"
#include "box/state.h"
#include "box/verify-gate.h"
#include "os/fd.h"
#include "os/proc.h"
#include "policy/decide-exec.h"

/*
 * An exec is judged twice. When it is asked for, by what its path leads to and by the arguments as they are in memory:
 * that can still be refused with an errno, and a person can be asked. Both can be another by the time that the kernel
 * reads them, so nothing rests on it: the exec is held (watch/held.h), and when the new program is there, what the
 * process executes, and the arguments it was given, are judged again (exec-held.c). What is not allowed is killed
 * before its first instruction. A failing first judgement is an early answer; the second one is the wall.
 *
 * A script is a program too: it is judged with its interpreters when it is asked for. Afterwards the interpreter alone
 * can be told for sure: it opens the script itself, by a path, as it opens any other file that it is given.
 */

enum { FINDINGS_SIZE = 16 << 10 };

/* ---- the gate ---- */

int exec_gate_prepare(struct box *box, const uint32_t *taken, size_t taken_count)
{
	const struct policy *policy = box->policy->policy;
	struct exec_gate *gate = calloc(1, sizeof *gate);
	int r;

	if (!gate)
		return -ENOMEM;
	/* To execute a file is to read it. */
	gate->judges_programs = policy_judges_programs(policy) || policy_gates_reads(policy);
	gate->judges_arguments = policy_judges_arguments(policy);
	gate->verifies = policy_verifies(policy);
	r = gate->judges_programs ? programs_new(&gate->programs, policy, taken, taken_count) : 0;
	if (r < 0) {
		free(gate);
		return r;
	}
	box->exec_gate = gate;
	return 0;
}

int exec_gate_enter(struct box *box)
{
	const struct exec_gate *gate = box->exec_gate;

	return gate->programs ? programs_enter(gate->programs, box->policy->policy, box->init.pid) : 0;
}

/* ---- the first judgement ---- */

/* How the kernel names to an interpreter what execveat(2) was given. */
static const char *called_as(const struct watch_exec *exec, char out[PATH_MAX])
{
	int r;

	if (exec->is_open_file)
		r = str_format(out, PATH_MAX, "/dev/fd/%d", exec->dir_fd);
	else if (exec->dir_fd != AT_FDCWD && *exec->exe != '/')
		r = str_format(out, PATH_MAX, "/dev/fd/%d/%s", exec->dir_fd, exec->exe);
	else
		return exec->exe;
	return r < 0 ? exec->exe : out;
}

/* What a script and all that interprets it are; words are the arguments of the last one. */
struct chain {
	struct exec_file files[EXEC_FILES_MAX];
	size_t count;
	struct exec_words words;
	char called_memory[PATH_MAX];
};

static void chain_done(struct chain *chain)
{
	for (size_t i = 0; i < chain->count; i++)
		exec_file_done(&chain->files[i]);
}

/* The next file: what was asked for, then what interprets it. 1: there is none. */
static int chain_next(struct chain *chain, const struct watch_exec *exec)
{
	struct exec_file *file = &chain->files[chain->count], *script = file - 1;

	if (chain->count && !script->line[0])
		return 1;
	if (chain->count == EXEC_FILES_MAX)
		return -ELOOP;
	file->fd = FD_NONE;
	file->is_unnamed = false;
	if (!chain->count++) {
		exec_words_take(&chain->words, exec->argv, exec->argv_left_out);
		return exec_file_open(file, exec);
	}
	exec_words_interpret(&chain->words, script,
			chain->count == 2 ? called_as(exec, chain->called_memory) : script[-1].line);
	return exec_file_open_interpreter(file, script, exec->pid);
}

/* When it is mapped it is judged again, but can be read already: here falls whatever can be told. 0 or -errno. */
static int judge_loader(const struct policy *policy, const struct exec_file *program, const struct watch_exec *exec,
			struct decision *decision)
{
	struct exec_file loader = EXEC_FILE_NONE;
	struct decision of_loader;
	int r = policy_gates_reads(policy) && !program->line[0]
			? exec_file_open_loader(&loader, program, exec->pid) : 1;

	/* Nobody but who hides something names it by a path that means something else to each process. */
	of_loader = r == -EOPNOTSUPP ? exec_refuse_unknown() : exec_decide_loader(policy, r == 0 ? loader.path : "");
	exec_file_done(&loader);
	if (of_loader.verdict < decision->verdict)
		*decision = of_loader;
	return r == -EOPNOTSUPP || r > 0 ? 0 : r;
}

/* 0: judged, and *ret_decision is the strictest, ASK where something is wanted; -errno: the exec would fail so. */
static int judge_chain(struct box *box, struct chain *chain, const struct watch_exec *exec,
		       struct exec_case *exec_case, struct decision *ret_decision)
{
	int r;

	ret_decision->verdict = VERDICT_COUNT;
	while ((r = chain_next(chain, exec)) == 0) {
		const struct exec_file *file = &chain->files[chain->count - 1];
		struct decision decision = exec_decide(box, file, &chain->words, false);

		r = judge_loader(box->policy->policy, file, exec, &decision);
		if (chain->words.is_cut && (decision.verdict == VERDICT_ASK ||
					    verify_external_wants(box, decision.verdict)))
			decision = exec_refuse_cut();
		if (r == 0 && decision.verdict == VERDICT_ASK)
			r = exec_case_want(exec_case, file->path, chain->words.list, &decision);
		if (r < 0)
			return r;
		if (decision.verdict < ret_decision->verdict)
			*ret_decision = decision;
		if (decision.verdict == VERDICT_DENY)
			return 0;
	}
	return r < 0 ? r : 0;
}

/* What is expected at the second judgement. */
static int expect(const struct box *box, struct exec_case *exec_case, const struct chain *chain,
		  const struct watch_exec *exec)
{
	const struct exec_gate *gate = box->exec_gate;

	exec_case->is_known = true;
	exec_case->st = chain->files[chain->count - 1].st;
	if (exec_case->verified)
		exec_hash_argv(chain->words.list, &exec_case->argv_hash);
	if (verify_external_wants(box, VERDICT_ASK) && exec_case_set(exec_case, chain->files[0].path, exec->argv) < 0)
		return -ENOMEM;
	if (exec_case->want_count || exec_case->path) {
		char cwd[PATH_MAX];

		exec_hash_argv(chain->words.list, &exec_case->argv_hash);
		exec_case->cwd = exec_caller_link(exec->pid, "cwd", cwd) < 0 ? NULL : str_dup(cwd);
	}
	if (chain->count == 1 || !gate->judges_arguments)
		return 0;
	exec_case->script = str_dup(chain->files[0].path);
	exec_case->called = str_dup(exec->argv[0] ? exec->argv[0] : "");
	exec_case->first_argument = chain->words.count - (strv_count(exec->argv) > 1 ? strv_count(exec->argv) - 1 : 0);
	return exec_case->script && exec_case->called ? 0 : -ENOMEM;
}

/* ---- the end of a case ---- */

static int log_decision(struct box *box, struct exec_case *exec_case, const struct exec_entry *entry,
			const struct decision *decision)
{
	bool is_allowed = decision->verdict != VERDICT_DENY;

	exec_trial_decided(box, exec_case->trial, is_allowed);
	return is_allowed ? exec_log_start(box, entry, decision) : exec_log_refusal(box, entry, decision);
}

/* ---- asking ---- */

static struct exec_entry entry_of(const struct watch_exec *exec)
{
	return (struct exec_entry){ exec->pid, exec->exe, exec->argv, exec, exec->argv_left_out };
}

static int answered(void *context, uint64_t token, const struct asking_outcome *outcome);

static int refuse_left(struct box *box, struct exec_case *exec_case, const struct asking_outcome *outcome)
{
	struct exec_entry entry = { exec_case->pid, exec_case->exe, (const char *const *)exec_case->wants[0].argv };
	struct decision decision = exec_decision_of(outcome);

	return log_decision(box, exec_case, &entry, &decision);
}

/* Whether the caller died while a person was asked: then nothing is left of its exec. */
static bool is_gone(void *context, uint64_t token)
{
	struct box *box = context;
	struct exec_case *exec_case = exec_case_find(&box->exec_gate->cases, token);
	struct asking_waiter waiter = { .done = answered, .context = box, .token = token };
	struct asking_outcome outcome;

	if (watch_is_awaited(box->watch, exec_case->id))
		return false;
	/* A signal that interrupted the call takes nobody's answer away: it is made again. What fails with the log is
	 * heard by all who use it next. */
	if (proc_is_over(exec_case->pid) && asking_left(box, &waiter, &outcome) > 0)
		(void)!refuse_left(box, exec_case, &outcome);
	exec_drop_case(box, exec_case);
	return true;
}

/* 0: *ret_outcome is the answer to the next question; 1: answered() will be called. */
static int ask_next(struct box *box, struct exec_case *exec_case, struct asking_outcome *ret_outcome)
{
	const struct exec_want *want = &exec_case->wants[exec_case->granted_count];
	struct asking_waiter waiter = { .done = answered, .is_gone = is_gone, .context = box,
					.token = exec_case->token };
	char program[PATH_MAX];
	struct asking_request request = {
		.action = { .kind = ACTION_EXEC, .subject = want->path, .argv = (const char *const *)want->argv },
		.decision = want->decision,
		.pid = exec_case->pid,
		.actor = {
			.program = exec_caller_link(exec_case->pid, "exe", program) < 0 ? NULL : program,
			.cwd = exec_case->cwd,
		},
	};
	int r = asking_begin(box, &request, &waiter, ret_outcome);

	exec_case->waits = r == 1;
	return r;
}

/* Asks until somebody has to be waited for (1), or all is granted or one thing refused (0). */
static int ask_all(struct box *box, struct exec_case *exec_case, struct asking_outcome *outcome)
{
	int r = 0;

	while (r == 0 && outcome->verdict == ASKING_ALLOWED && exec_case->granted_count < exec_case->want_count) {
		r = ask_next(box, exec_case, outcome);
		exec_case->granted_count += r == 0 && outcome->verdict == ASKING_ALLOWED;
	}
	return r;
}

static int answer_exec(struct box *box, struct exec_case *exec_case, int errnum)
{
	bool is_held = !errnum && box->exec_gate->judges_programs;
	struct watch_exec_answer answer = { .errnum = errnum, .is_held = is_held, .token = exec_case->token };
	uint64_t id = exec_case->id;
	pid_t pid = exec_case->pid;

	if (!is_held)
		exec_drop_case(box, exec_case);
	return watch_answer_exec(box->watch, id, pid, &answer);
}

static int answered(void *context, uint64_t token, const struct asking_outcome *given)
{
	struct box *box = context;
	struct exec_case *exec_case = exec_case_find(&box->exec_gate->cases, token);
	struct asking_outcome outcome = *given;
	struct decision decision;
	struct exec_entry entry;
	int r;

	exec_case->waits = false;
	exec_case->granted_count += outcome.verdict == ASKING_ALLOWED;
	r = ask_all(box, exec_case, &outcome);
	if (r == 1)
		return 0;
	entry = (struct exec_entry){ exec_case->pid, exec_case->exe, (const char *const *)exec_case->wants[0].argv };
	decision = exec_decision_of(&outcome);
	if (r == 0)
		r = log_decision(box, exec_case, &entry, &decision);
	if (r < 0)
		return r;
	return answer_exec(box, exec_case, decision.verdict == VERDICT_ALLOW ? 0 : EACCES);
}

/* ---- a second opinion ---- */

static const struct asking_outcome nothing_asked = { .verdict = ASKING_ALLOWED };

/* What the rules said, tightened. */
static int tighten(struct exec_case *exec_case, const struct external_opinion *opinion, struct decision *decision)
{
	struct decision ask = { VERDICT_ASK, { "verify.external", "", 0 }, exec_case->opinion, "", NULL };

	exec_case->has_opinion = true;
	if (str_format(exec_case->opinion, sizeof exec_case->opinion, "the external verifier %s: %s",
		       opinion->verdict == JUDGE_DENY ? "refused it" : "is not sure", opinion->reason) < 0)
		memcpy(exec_case->opinion, "the external verifier", sizeof "the external verifier");
	exec_case->is_denied = opinion->verdict == JUDGE_DENY;
	if (exec_case->is_denied)
		*decision = (struct decision){ VERDICT_DENY, { "verify.external", "", 0 }, exec_case->opinion,
					       "do what the task needs in another way, or ask the person", NULL };
	if (opinion->verdict != JUDGE_UNCLEAR || decision->verdict == VERDICT_ASK)
		return 0;
	*decision = ask;
	return exec_case_want(exec_case, exec_case->path, (const char *const *)exec_case->argv, &ask);
}

/* Whether a verifier refused it, and not a rule about programs, a person, or that nobody could judge it. */
static bool is_condemned(const struct exec_case *exec_case, const struct decision *decision)
{
	const struct verify_outcome *outcome = exec_case->verified ? &exec_case->verified->outcome : NULL;

	if (decision->verdict != VERDICT_DENY)
		return false;
	return exec_case->is_denied || (outcome && outcome->action >= VERIFY_DRY_RUN && !outcome->is_unknown &&
					str_equal(decision->rule.id, outcome->id));
}

static int opined(void *context, uint64_t token, const struct external_opinion *opinion)
{
	struct box *box = context;
	struct exec_case *exec_case = exec_case_find(&box->exec_gate->cases, token);
	struct asking_outcome outcome = nothing_asked;
	struct decision decision;
	struct exec_entry entry;
	int r;

	if (!exec_case)
		return 0;
	decision = exec_case->judged;
	entry = (struct exec_entry){ exec_case->pid, exec_case->exe, (const char *const *)exec_case->argv };
	exec_case->is_judged_on = false;
	if (!watch_is_awaited(box->watch, exec_case->id)) {
		exec_drop_case(box, exec_case);
		return 0;
	}
	r = tighten(exec_case, opinion, &decision);
	entry.is_condemned = is_condemned(exec_case, &decision);
	if (r == 0 && decision.verdict != VERDICT_DENY)
		r = ask_all(box, exec_case, &outcome);
	if (r)
		return r < 0 ? r : 0;
	if (decision.verdict == VERDICT_ASK)
		decision = exec_decision_of(&outcome);
	r = log_decision(box, exec_case, &entry, &decision);
	return r < 0 ? r : answer_exec(box, exec_case, decision.verdict != VERDICT_DENY ? 0 : EACCES);
}

static struct external_waiter opinion_of(struct box *box, const struct exec_case *exec_case)
{
	return (struct external_waiter){ opined, box, exec_case->token };
}

/* What atoll-verify found, of which the box keeps the worst. */
static void put_findings(const struct exec_case *exec_case, struct buf *out)
{
	const struct verify_outcome *outcome = exec_case->verified ? &exec_case->verified->outcome : NULL;
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

/* 1: opined() will be called; 0: *decision is tightened already. */
static int have_opinion(struct box *box, struct exec_case *exec_case, struct decision *decision)
{
	struct external_waiter waiter = opinion_of(box, exec_case);
	struct external_opinion opinion;
	char program[PATH_MAX], findings[FINDINGS_SIZE];
	struct buf found;
	struct external_request request = {
		.action = { .kind = ACTION_EXEC, .subject = exec_case->path,
			    .argv = (const char *const *)exec_case->argv },
		.verdict = decision->verdict, .rule = decision->rule.id, .pid = exec_case->pid, .cwd = exec_case->cwd,
		.program = exec_caller_link(exec_case->pid, "exe", program) < 0 ? NULL : program,
	};
	int r;

	buf_init_fixed(&found, findings, sizeof findings);
	put_findings(exec_case, &found);
	request.findings = buf_error(&found) ? "[{\"id\":\"verify.unknown\"}]" : buf_text(&found);
	r = verify_external_begin(box, &request, &waiter, &opinion);

	exec_case->judged = *decision;
	exec_case->is_judged_on = r == 1;
	return r ? r : tighten(exec_case, &opinion, decision);
}

/* ---- the first judgement, as a whole ---- */

/* Takes the case. */
static int conclude(struct box *box, struct exec_case *exec_case, const struct watch_exec *exec,
		    struct decision decision, struct watch_exec_answer *ret_answer)
{
	struct asking_outcome outcome = nothing_asked;
	struct exec_entry entry = entry_of(exec);
	int r = 0;

	if (exec_case->path && verify_external_wants(box, decision.verdict))
		r = have_opinion(box, exec_case, &decision);
	entry.is_condemned = is_condemned(exec_case, &decision);
	if (r == 0 && decision.verdict != VERDICT_DENY)
		r = ask_all(box, exec_case, &outcome);
	ret_answer->token = exec_case->token;
	ret_answer->is_later = r == 1;
	if (r)
		return r < 0 ? r : 0;
	if (decision.verdict == VERDICT_ASK)
		decision = exec_decision_of(&outcome);
	ret_answer->is_held = decision.verdict != VERDICT_DENY && box->exec_gate->judges_programs;
	ret_answer->errnum = decision.verdict == VERDICT_DENY ? EACCES : 0;
	r = log_decision(box, exec_case, &entry, &decision);
	if (!ret_answer->is_held)
		exec_drop_case(box, exec_case);
	return r;
}

/* What atoll-verify found, as a decision: its texts are the case's. ALLOW: nothing that matters. */
static struct decision verified_decision(const struct exec_case *exec_case)
{
	const struct verify_outcome *outcome = exec_case->verified ? &exec_case->verified->outcome : NULL;
	struct decision decision = { VERDICT_ALLOW, { "exec.default", "", 0 }, "", "", NULL };

	if (!outcome || outcome->action <= VERIFY_NOTE)
		return decision;
	return (struct decision){ outcome->action == VERIFY_ASK ? VERDICT_ASK : VERDICT_DENY, { outcome->id, "", 0 },
				  outcome->reason, outcome->hint, NULL };
}

/* Where no program is judged by what it is, only what was found counts. Takes the case. */
static int conclude_verified(struct box *box, struct exec_case *exec_case, const struct watch_exec *exec,
			     struct watch_exec_answer *ret_answer)
{
	struct decision decision = verified_decision(exec_case);
	char cwd[PATH_MAX];

	if (decision.verdict == VERDICT_ASK && exec->argv_left_out)
		decision = exec_refuse_cut();
	if (decision.verdict == VERDICT_ASK) {
		int r = exec_case_want(exec_case, exec->exe, exec->argv, &decision);

		if (r == 0 && verify_external_wants(box, VERDICT_ASK))
			r = exec_case_set(exec_case, exec->exe, exec->argv);

		if (r < 0)
			return r;
		exec_case->cwd = exec_caller_link(exec->pid, "cwd", cwd) < 0 ? NULL : str_dup(cwd);
	}
	return conclude(box, exec_case, exec, decision, ret_answer);
}

/* A path that means something else to us is judged when its program is there. */
static int judge(struct box *box, struct exec_case *exec_case, const struct watch_exec *exec,
		 struct watch_exec_answer *ret_answer)
{
	struct decision decision, verified = verified_decision(exec_case);
	struct chain chain;
	int r;

	chain.count = 0;
	exec_case->id = exec->id;
	exec_case->pid = exec->pid;
	r = judge_chain(box, &chain, exec, exec_case, &decision);
	if (r == 0 && verified.verdict < decision.verdict)
		decision = verified;
	if (r == 0 && decision.verdict != VERDICT_DENY && verified.verdict == VERDICT_ASK)
		r = chain.words.is_cut ? -E2BIG
				       : exec_case_want(exec_case, chain.files[0].path, chain.words.list, &verified);
	if (r == 0 && decision.verdict != VERDICT_DENY)
		r = expect(box, exec_case, &chain, exec);
	chain_done(&chain);
	if (r == -ENOENT || r == -ENOTDIR || r == -EACCES || r == -ETXTBSY) {
		ret_answer->errnum = -r;
		exec_drop_case(box, exec_case);
		return 0;
	}
	if (r == -ENOMEM)
		return r;
	/* What was found holds for a path as well that is judged when it is there; nobody could be asked about it. */
	if (r < 0 && verified.verdict < VERDICT_ALLOW)
		decision = verified.verdict == VERDICT_DENY ? verified : exec_refuse_cut();
	else if (r < 0)
		decision = (struct decision){ VERDICT_ALLOW, { "builtin.image", "", 0 }, "judged when it is there", "",
					      NULL };
	return conclude(box, exec_case, exec, decision, ret_answer);
}

/* Takes the case, which is new or comes back from atoll-verify. */
static int judge_case(struct box *box, struct exec_case *exec_case, const struct watch_exec *exec,
		      struct watch_exec_answer *ret_answer)
{
	struct verify_outcome *outcome = exec_case->verified ? &exec_case->verified->outcome : NULL;

	if (outcome && outcome->action == VERIFY_DRY_RUN) {
		int r = exec_trial_ask(box, exec, exec_case->token, outcome, &exec_case->trial);

		exec_case->is_tried = ret_answer->is_later = r == 1;
		if (r)
			return r < 0 ? r : 0;
	}
	return box->exec_gate->judges_programs ? judge(box, exec_case, exec, ret_answer)
					       : conclude_verified(box, exec_case, exec, ret_answer);
}

/*
 * What the command would do is looked at first. 0: that is known, or *ret_errnum says that it is none; 1: it will be;
 * negative: the log failed.
 */
static int verify(struct box *box, struct exec_case *exec_case, const struct watch_exec *exec, int *ret_errnum)
{
	int r = exec_case_keep(exec_case, exec);

	if (r == 0)
		r = verify_gate_ask(box, exec, exec_case->token, &exec_case->verified->outcome,
				    ret_errnum);
	exec_case->is_verifying = r == 1;
	return r;
}

/* What was waited for is known, and stands in the case. */
static int go_on(struct box *box, struct exec_case *exec_case)
{
	struct watch_exec_answer answer = { 0 };
	uint64_t id = exec_case->id;
	pid_t pid = exec_case->pid;
	struct watch_exec exec;
	int r;

	if (!watch_is_awaited(box->watch, id)) {
		exec_drop_case(box, exec_case);
		return 0;
	}
	exec = exec_case_kept(exec_case);
	r = judge_case(box, exec_case, &exec, &answer);
	return r < 0 || answer.is_later ? r : watch_answer_exec(box->watch, id, pid, &answer);
}

int exec_gate_verified(struct box *box, uint64_t token, const struct verify_outcome *outcome)
{
	struct exec_case *exec_case = exec_case_find(&box->exec_gate->cases, token);

	if (!exec_case)
		return 0;
	exec_case->is_verifying = false;
	exec_case->verified->outcome = *outcome;
	return go_on(box, exec_case);
}

int exec_gate_tried(struct box *box, uint64_t token)
{
	struct exec_case *exec_case = exec_case_find(&box->exec_gate->cases, token);

	if (!exec_case || !exec_trial_find(box, token, &exec_case->verified->outcome, &exec_case->trial))
		return 0;
	exec_case->is_tried = false;
	return go_on(box, exec_case);
}

int exec_gate_judge(void *context, const struct watch_exec *exec, struct watch_exec_answer *ret_answer)
{
	static const struct decision unjudged = { VERDICT_ALLOW, { "exec.default", "", 0 }, "", "", NULL };
	struct exec_entry entry = entry_of(exec);
	struct box *box = context;
	struct exec_gate *gate = box->exec_gate;
	struct exec_case *exec_case;
	struct decision refused;
	int r = rate_take(box, RATE_EXEC);

	if (r) {
		ret_answer->errnum = EAGAIN;
		return r < 0 ? r : 0;
	}
	if (exec_place_refuses(box, exec, &refused)) {
		ret_answer->errnum = EACCES;
		return exec_log_refusal(box, &entry, &refused);
	}
	if (!gate->judges_programs && !gate->verifies)
		return exec_log_start(box, &entry, &unjudged);
	exec_case = exec_case_new(&gate->cases, exec->exe);
	if (!exec_case)
		return -ENOMEM;
	r = gate->verifies ? verify(box, exec_case, exec, &ret_answer->errnum) : 0;
	if (ret_answer->errnum) {
		exec_drop_case(box, exec_case);
		return 0;
	}
	ret_answer->is_later = r == 1;
	return r ? (r < 0 ? r : 0) : judge_case(box, exec_case, exec, ret_answer);
}

/* ---- the life of the gate ---- */

int exec_gate_release(struct box *box)
{
	struct exec_case *next;
	int r = 0;

	for (struct exec_case *at = box->exec_gate ? box->exec_gate->cases.first : NULL; at && r == 0; at = next) {
		struct external_waiter opinion = opinion_of(box, at);

		next = at->next;
		if (!at->waits && !at->is_verifying && !at->is_judged_on && !at->is_tried)
			continue;
		if (at->waits)
			asking_forget(box, &(struct asking_waiter){ .done = answered, .context = box, .token =
				at->token });
		verify_gate_forget(box, at->token);
		verify_external_forget(box, &opinion);
		r = watch_restart_exec(box->watch, at->id, at->pid);
		exec_trial_release(box, at->token);
		exec_drop_case(box, at);
	}
	return r;
}

void exec_gate_done(struct box *box)
{
	struct exec_gate *gate = box->exec_gate;

	if (!gate)
		return;
	while (gate->cases.first)
		exec_case_free(&gate->cases, gate->cases.first);
	programs_free(gate->programs);
	free(gate);
	box->exec_gate = NULL;
}
