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
#include "box/exec-log.h"
#include "box/exec-trial.h"
#include "box/programs.h"
#include "box/rate.h"
#include "box/state.h"
#include "box/verify-gate.h"
#include "os/clock.h"
#include "os/fd.h"
#include "policy/decide-exec.h"

/*
 * An exec is judged twice. When it is asked for, by what its path leads to and by the arguments as they are in memory:
 * that can still be refused with an errno, and a person can be asked. Both can be another by the time that the kernel
 * reads them, so nothing rests on it: the exec is held (watch/held.h), and when the new program is there, what the
 * process executes, and the arguments it was given, are judged again. What is not allowed is killed before its first
 * instruction. A failing first judgement is an early answer; the second one is the wall.
 *
 * A script is a program too: it is judged with its interpreters when it is asked for. Afterwards the interpreter alone
 * can be told for sure: it opens the script itself, by a path, as it opens any other file that it is given.
 */

enum { FINDINGS_SIZE = 16 << 10, REFRESH_NS = 1000000000, WORDS_MAX = WATCH_ARGV_MAX + 3 * EXEC_FILES_MAX };

struct exec_gate {
	bool is_open;                /* all that the rules name was looked up */
	bool judges_programs;        /* else execs are counted and recorded, and nothing more */
	bool judges_arguments;
	bool verifies;               /* what commands would do is looked at (box/verify-gate.h) */
	struct programs *programs;   /* NULL: not judged */
	uint64_t refreshed_ns;
	struct exec_cases cases;
};

/* Arguments; borrowed. */
struct words {
	const char *list[WORDS_MAX + 1];
	size_t count;
	bool is_cut;                 /* there are more */
};

/* ---- one program ---- */

int exec_gate_prepare(struct box *box)
{
	const struct policy *policy = box->policy->policy;
	struct exec_gate *gate = calloc(1, sizeof *gate);
	int r;

	if (!gate)
		return -ENOMEM;
	gate->judges_programs = policy_judges_programs(policy);
	gate->judges_arguments = policy_judges_arguments(policy);
	gate->verifies = policy_verifies(policy);
	r = gate->judges_programs ? programs_new(&gate->programs, policy) : 0;
	if (r < 0) {
		free(gate);
		return r;
	}
	box->exec_gate = gate;
	return 0;
}

static int open_gate(struct box *box, struct exec_gate **ret_gate)
{
	struct exec_gate *gate = box->exec_gate;
	int r;

	*ret_gate = gate;
	if (gate->is_open)
		return 0;
	/* The first program has not run yet: what the rules name is what it was. */
	r = gate->programs ? programs_enter(gate->programs, box->policy->policy, box->init.pid) : 0;
	gate->is_open = r == 0;
	return r;
}

static struct decision refuse_unknown(void)
{
	return (struct decision){ VERDICT_DENY, { "builtin.program", "", 0 },
				  "nobody can tell which program this is: it cannot be read",
				  "a program must be readable where programs are judged", NULL };
}

/* Nobody can be asked about arguments that nobody can be shown. */
static struct decision refuse_cut(void)
{
	return (struct decision){ VERDICT_DENY, { "builtin.arguments", "", 0 },
				  "it has more arguments than can be judged, or longer ones",
				  "hand them over in a file, if the program takes one", NULL };
}

/* Nobody can be waited for when the program is there already. */
static struct decision refuse_unverified(void)
{
	return (struct decision){ VERDICT_DENY, { "builtin.unverified", "", 0 },
				  "it is not what the external verifier was shown",
				  "start it by its path, and leave file and arguments alone meanwhile", NULL };
}

static struct decision decide(struct box *box, const struct exec_file *file, const struct words *words, bool is_held)
{
	const char *names[PROGRAM_NAMES_MAX + 1];
	struct action action = {
		.kind = ACTION_EXEC, .subject = file->path, .argv = words ? words->list : NULL, .names = names,
		.is_unnamed = file->is_unnamed, .is_cut = words && words->is_cut,
	};
	struct exec_gate *gate = box->exec_gate;
	struct decision decision;
	uint64_t now_ns;

	if (programs_identify(gate->programs, file->fd, &file->st, is_held, names) < 0)
		return refuse_unknown();
	decision = policy_decide(box->policy->policy, &action);
	now_ns = decision.verdict == VERDICT_ALLOW ? 0 : clock_monotonic_ns();
	/* An upgrade of the system may have exchanged a program that nothing inside can. */
	if (now_ns < gate->refreshed_ns + REFRESH_NS)
		return decision;
	gate->refreshed_ns = now_ns;
	programs_refresh(gate->programs);
	if (programs_identify(gate->programs, file->fd, &file->st, is_held, names) < 0)
		return refuse_unknown();
	return policy_decide(box->policy->policy, &action);
}

/* ---- the first judgement ---- */

/* The arguments that the kernel gives to the interpreter of a script that was called by this path. */
static void words_interpret(struct words *words, const struct exec_file *script, const char *called)
{
	size_t added = script->argument ? 2 : 1;

	if (!words->count)
		words->count = 1;
	if (words->count + added > WORDS_MAX) {
		words->count = WORDS_MAX - added;
		words->is_cut = true;
	}
	memmove(words->list + added, words->list, words->count * sizeof *words->list);
	words->list[added] = called;
	words->list[0] = script->line;
	if (script->argument)
		words->list[1] = script->argument;
	words->count += added;
	words->list[words->count] = NULL;
}

static void words_take(struct words *words, const char *const *argv, bool is_cut)
{
	words->is_cut = is_cut;
	for (words->count = 0; argv[words->count]; words->count++)
		words->list[words->count] = argv[words->count];
	/* Linux gives an empty vector an empty name. */
	if (!words->count)
		words->list[words->count++] = "";
	words->list[words->count] = NULL;
}

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
	struct words words;
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
		words_take(&chain->words, exec->argv, exec->argv_left_out);
		return exec_file_open(file, exec);
	}
	words_interpret(&chain->words, script,
			chain->count == 2 ? called_as(exec, chain->called_memory) : script[-1].line);
	return exec_file_open_interpreter(file, script, exec->pid);
}

/* 0: judged, and *ret_decision is the strictest, ASK where something is wanted; -errno: the exec would fail so. */
static int judge_chain(struct box *box, struct chain *chain, const struct watch_exec *exec,
		       struct exec_case *exec_case, struct decision *ret_decision)
{
	int r;

	ret_decision->verdict = VERDICT_COUNT;
	while ((r = chain_next(chain, exec)) == 0) {
		const struct exec_file *file = &chain->files[chain->count - 1];
		struct decision decision = decide(box, file, &chain->words, false);

		if (chain->words.is_cut && (decision.verdict == VERDICT_ASK ||
					    verify_external_wants(box, decision.verdict)))
			decision = refuse_cut();
		if (decision.verdict == VERDICT_ASK)
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

static void drop_case(struct box *box, struct exec_case *exec_case)
{
	exec_trial_forget(box, exec_case->token);
	exec_case_free(&box->exec_gate->cases, exec_case);
}

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

/* Whether the caller died while a person was asked: then nothing is left of its exec. */
static bool is_gone(void *context, uint64_t token)
{
	struct box *box = context;
	struct exec_case *exec_case = exec_case_find(&box->exec_gate->cases, token);

	if (watch_is_awaited(box->watch, exec_case->id))
		return false;
	drop_case(box, exec_case);
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

static struct decision decision_of(const struct asking_outcome *outcome)
{
	return (struct decision){ outcome->verdict == ASKING_ALLOWED ? VERDICT_ALLOW : VERDICT_DENY, outcome->rule,
				  outcome->reason, outcome->hint, NULL };
}

static int answer_exec(struct box *box, struct exec_case *exec_case, int errnum)
{
	bool is_held = !errnum && box->exec_gate->judges_programs;
	struct watch_exec_answer answer = { .errnum = errnum, .is_held = is_held, .token = exec_case->token };
	uint64_t id = exec_case->id;
	pid_t pid = exec_case->pid;

	if (!is_held)
		drop_case(box, exec_case);
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
	decision = decision_of(&outcome);
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
		drop_case(box, exec_case);
		return 0;
	}
	r = tighten(exec_case, opinion, &decision);
	entry.is_condemned = is_condemned(exec_case, &decision);
	if (r == 0 && decision.verdict != VERDICT_DENY)
		r = ask_all(box, exec_case, &outcome);
	if (r)
		return r < 0 ? r : 0;
	if (decision.verdict == VERDICT_ASK)
		decision = decision_of(&outcome);
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
		decision = decision_of(&outcome);
	ret_answer->is_held = decision.verdict != VERDICT_DENY && box->exec_gate->judges_programs;
	ret_answer->errnum = decision.verdict == VERDICT_DENY ? EACCES : 0;
	r = log_decision(box, exec_case, &entry, &decision);
	if (!ret_answer->is_held)
		drop_case(box, exec_case);
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
		decision = refuse_cut();
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
		drop_case(box, exec_case);
		return 0;
	}
	if (r == -ENOMEM)
		return r;
	/* What was found holds for a path as well that is judged when it is there; nobody could be asked about it. */
	if (r < 0 && verified.verdict < VERDICT_ALLOW)
		decision = verified.verdict == VERDICT_DENY ? verified : refuse_cut();
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

/* What the command would do is looked at first. 0: that is known; 1: it will be; negative: the log failed. */
static int verify(struct box *box, struct exec_case *exec_case, const struct watch_exec *exec)
{
	int r = exec_case_keep(exec_case, exec);

	if (r == 0)
		r = verify_gate_ask(box, exec, exec_case->token, &exec_case->verified->outcome);
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
		drop_case(box, exec_case);
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
	struct exec_case *exec_case;
	struct exec_gate *gate;
	int r = rate_take(box, RATE_EXEC);

	if (r) {
		ret_answer->errnum = EAGAIN;
		return r < 0 ? r : 0;
	}
	r = open_gate(box, &gate);
	if (r < 0)
		return r;
	if (!gate->judges_programs && !gate->verifies)
		return exec_log_start(box, &entry, &unjudged);
	exec_case = exec_case_new(&gate->cases, exec->exe);
	if (!exec_case)
		return -ENOMEM;
	r = gate->verifies ? verify(box, exec_case, exec) : 0;
	ret_answer->is_later = r == 1;
	return r ? (r < 0 ? r : 0) : judge_case(box, exec_case, exec, ret_answer);
}

/* ---- the second judgement ---- */

/* What the process was given, cut as at the first judgement. */
static int read_words(pid_t pid, char memory[WATCH_TEXT_MAX], struct words *words)
{
	cleanup_fd int fd = FD_NONE;
	char path[32];
	size_t size = 0, at = 0;
	ssize_t n = 1;

	if (str_format(path, sizeof path, "/proc/%d/cmdline", pid) == 0)
		fd = fd_open_at(AT_FDCWD, path, O_RDONLY, 0);
	while (fd >= 0 && n > 0 && size < WATCH_TEXT_MAX - 1) {
		n = read(fd, memory + size, WATCH_TEXT_MAX - 1 - size);
		size += n > 0 ? (size_t)n : 0;
	}
	if (fd < 0 || n < 0)
		return -ESRCH;
	memory[size] = 0;
	for (words->count = 0; at < size && words->count < WORDS_MAX; at += strlen(memory + at) + 1)
		words->list[words->count++] = memory + at;
	words->list[words->count] = NULL;
	words->is_cut = at < size || size == WATCH_TEXT_MAX - 1;
	return 0;
}

/* Whether it is exactly what was judged at first. */
static bool is_as_judged(const struct exec_case *exec_case, const struct exec_file *image, const struct words *words,
			 pid_t pid)
{
	char cwd[PATH_MAX];
	struct hash hash;

	if (!exec_case_is_expected(exec_case, &image->st))
		return false;
	/* Another thread, or who shares the directory (CLONE_FS), may have gone elsewhere meanwhile. */
	if (!exec_case->cwd || exec_caller_link(pid, "cwd", cwd) < 0 || !str_equal(cwd, exec_case->cwd))
		return false;
	exec_hash_argv(words->list, &hash);
	return memcmp(&hash, &exec_case->argv_hash, sizeof hash) == 0;
}

/* Whether a person allowed exactly this. */
static bool is_as_granted(const struct exec_case *exec_case, const struct exec_file *image, const struct words *words,
			  pid_t pid)
{
	return exec_case->want_count && exec_case->granted_count == exec_case->want_count &&
	       is_as_judged(exec_case, image, words, pid);
}

/* Nobody can be waited for now: what was allowed before is, and the rest is listed for the next time. */
static int find_grant(struct box *box, const struct exec_file *image, const struct words *words, pid_t pid,
		      struct decision *decision)
{
	char cwd[PATH_MAX];
	struct asking_request request = {
		.action = { .kind = ACTION_EXEC, .subject = image->path, .argv = words->list },
		.decision = *decision, .pid = pid,
		.actor.cwd = exec_caller_link(pid, "cwd", cwd) < 0 ? "?" : cwd,
	};
	struct asking_outcome outcome;
	int r = asking_begin(box, &request, NULL, &outcome);

	if (r == 0)
		*decision = decision_of(&outcome);
	return r;
}

static struct decision decide_script(struct box *box, const struct exec_case *exec_case, const struct words *words)
{
	const char *const *rest = words->list + (exec_case->first_argument < words->count ? exec_case->first_argument
											   : words->count);
	const char *list[WORDS_MAX + 2] = { exec_case->called };
	struct action action = { .kind = ACTION_EXEC, .subject = exec_case->script, .argv = list,
				 .is_cut = words->is_cut };

	for (size_t i = 0; rest[i]; i++)
		list[i + 1] = rest[i];
	return policy_decide(box->policy->policy, &action);
}

/* What was judged by what it would do must be what it does: another thread may have changed the arguments meanwhile. */
static bool is_as_verified(const struct exec_case *exec_case, const struct words *words)
{
	struct hash hash;

	if (!exec_case->verified)
		return true;
	/* What was too long to be judged was told to the policy as such; what has become too long was not. */
	if (words->is_cut || !exec_case->is_known)
		return exec_case->verified->argv_left_out > 0;
	exec_hash_argv(words->list, &hash);
	return memcmp(&hash, &exec_case->argv_hash, sizeof hash) == 0;
}

static struct decision refuse_changed(void)
{
	return (struct decision){ VERDICT_DENY, { "builtin.changed", "", 0 },
				  "its arguments are not those that were judged",
					"do not change them while it starts", NULL };
}

/* 0: *ret_decision; negative: the log failed. */
static int judge_image(struct box *box, const struct exec_case *exec_case, const struct exec_file *image, pid_t pid,
		       struct decision *ret_decision)
{
	struct exec_gate *gate = box->exec_gate;
	char memory[WATCH_TEXT_MAX];
	struct words words = { .count = 0 };
	bool has_words = gate->judges_arguments || exec_case->want_count || exec_case->verified ||
			 verify_external_wants(box, VERDICT_ASK);

	*ret_decision = refuse_unknown();
	if (has_words && read_words(pid, memory, &words) < 0)
		return 0;
	*ret_decision = decide(box, image, has_words ? &words : NULL, true);
	if (ret_decision->verdict > VERDICT_ASK && !is_as_verified(exec_case, &words))
		*ret_decision = refuse_changed();
	if (ret_decision->verdict > VERDICT_ASK && exec_case->script) {
		struct decision script = decide_script(box, exec_case, &words);

		*ret_decision = script.verdict < ret_decision->verdict ? script : *ret_decision;
	}
	if (verify_external_wants(box, ret_decision->verdict) &&
	    (!exec_case->has_opinion || !is_as_judged(exec_case, image, &words, pid))) {
		*ret_decision = refuse_unverified();
		return 0;
	}
	if (ret_decision->verdict != VERDICT_ASK || is_as_granted(exec_case, image, &words, pid))
		return 0;
	if (!has_words && read_words(pid, memory, &words) < 0)
		return 0;
	if (words.is_cut) {
		*ret_decision = refuse_cut();
		return 0;
	}
	return find_grant(box, image, &words, pid, ret_decision);
}

/* Takes the case. */
static int conclude_image(struct box *box, struct exec_case *exec_case, const struct exec_file *image, pid_t pid)
{
	struct exec_entry entry = { .pid = pid, .subject = image->fd >= 0 ? image->path : exec_case->exe };
	bool is_expected = image->fd >= 0 && exec_case_is_expected(exec_case, &image->st);
	struct decision decision = refuse_unknown();
	int r = image->fd >= 0 ? judge_image(box, exec_case, image, pid, &decision) : 0;

	drop_case(box, exec_case);
	if (r < 0)
		return r;
	if (decision.verdict == VERDICT_DENY) {
		r = exec_log_refusal(box, &entry, &decision);
		return r < 0 ? r : 1;
	}
	/* Another one than was written down, and as good. */
	return is_expected ? 0 : exec_log_start(box, &entry, &decision);
}

int exec_gate_image(void *context, uint64_t token, pid_t pid)
{
	struct box *box = context;
	struct exec_case *exec_case = exec_case_find(&box->exec_gate->cases, token);
	struct exec_file image = EXEC_FILE_NONE;
	int r;

	if (exec_file_open_image(&image, pid) < 0)
		exec_file_done(&image);
	r = conclude_image(box, exec_case, &image, pid);
	exec_file_done(&image);
	return r;
}

void exec_gate_over(void *context, uint64_t token)
{
	struct box *box = context;
	struct exec_case *exec_case = exec_case_find(&box->exec_gate->cases, token);

	if (exec_case)
		drop_case(box, exec_case);
}

int exec_gate_unheld(void *context, uint64_t token, pid_t pid, int errnum)
{
	static const struct decision traced = {
		VERDICT_DENY, { "builtin.traced", "", 0 },
		"a program that another one traces cannot start programs where the policy judges them",
		"run it without a debugger or strace", NULL,
	};
	static const struct decision busy = {
		VERDICT_DENY, { "builtin.busy", "", 0 }, "too many programs start at the same time", "try again", NULL,
	};
	static const struct decision late = {
		VERDICT_DENY, { "builtin.late", "", 0 }, "its start took too long, so it was killed",
		"something holds its file, or a thread of its process: let go of that, and try again", NULL,
	};
	struct box *box = context;
	struct exec_case *exec_case = exec_case_find(&box->exec_gate->cases, token);
	struct exec_entry entry = { .pid = pid, .subject = exec_case->exe };
	int r = 0;

	if (errnum != ESRCH)
		r = exec_log_refusal(box, &entry, errnum == EAGAIN ? &busy : errnum == ETIMEDOUT ? &late : &traced);
	drop_case(box, exec_case);
	return r;
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
		drop_case(box, at);
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
