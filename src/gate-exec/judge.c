/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-exec/judge.h"

#include <fcntl.h>
#include <limits.h>

#include "approve/reviewer.h"
#include "base/str.h"
#include "gate-exec/arguments.h"
#include "gate-exec/case.h"
#include "gate-exec/decide.h"
#include "gate-exec/file.h"
#include "policy/decide.h"
#include "supervise/run.h"
#include "watch/watch.h"

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
static int judge_chain(struct exec_gate *gate, struct chain *chain, const struct watch_exec *exec,
		       struct exec_case *exec_case, struct decision *ret_decision)
{
	int r;

	ret_decision->verdict = VERDICT_COUNT;
	while ((r = chain_next(chain, exec)) == 0) {
		const struct exec_file *file = &chain->files[chain->count - 1];
		struct decision decision = exec_decide(gate, file, &chain->words, false);

		r = judge_loader(gate->in.run->policy->policy, file, exec, &decision);
		if (chain->words.is_cut && (decision.verdict == VERDICT_ASK ||
					    reviewer_wants(gate->in.reviewer, decision.verdict)))
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
static int expect(const struct exec_gate *gate, struct exec_case *exec_case, const struct chain *chain,
		  const struct watch_exec *exec)
{
	exec_case->is_known = true;
	exec_case->st = chain->files[chain->count - 1].st;
	if (exec_case->verified)
		exec_hash_argv(chain->words.list, &exec_case->argv_hash);
	if (reviewer_wants(gate->in.reviewer, VERDICT_ASK) &&
	    exec_case_set(exec_case, chain->files[0].path, exec->argv) < 0)
		return -ENOMEM;
	if (exec_case->want_count || exec_case->review.path) {
		char cwd[PATH_MAX];

		exec_hash_argv(chain->words.list, &exec_case->argv_hash);
		exec_case->cwd = exec_caller_link(exec->pid, "cwd", cwd) < 0 ? NULL : str_dup(cwd);
	}
	if (chain->count == 1 || !gate->judges_arguments)
		return 0;
	exec_case->script.path = str_dup(chain->files[0].path);
	exec_case->script.called = str_dup(exec->argv[0] ? exec->argv[0] : "");
	exec_case->script.first_argument = chain->words.count - (strv_count(exec->argv) > 1 ? strv_count(exec->argv) - 1
								 : 0);
	return exec_case->script.path && exec_case->script.called ? 0 : -ENOMEM;
}

/* What atoll-verify found, as a decision: its texts are the case's. ALLOW: nothing that matters. */
static struct decision verified_decision(const struct exec_case *at)
{
	const struct verify_outcome *outcome = at->verified ? &at->verified->outcome : NULL;
	struct decision decision = { VERDICT_ALLOW, { "exec.default", "", 0 }, "", "", NULL };

	if (!outcome || outcome->action <= VERIFY_NOTE)
		return decision;
	return (struct decision){ outcome->action == VERIFY_ASK ? VERDICT_ASK : VERDICT_DENY, { outcome->id, "", 0 },
				  outcome->reason, outcome->hint, NULL };
}

/* Where no program is judged by what it is, only what was found counts. */
static int judge_finding(struct exec_gate *gate, struct exec_case *at, const struct watch_exec *exec)
{
	char cwd[PATH_MAX];
	int r;

	at->decision = verified_decision(at);
	if (at->decision.verdict == VERDICT_ASK && exec->argv_left_out)
		at->decision = exec_refuse_cut();
	if (at->decision.verdict != VERDICT_ASK)
		return 0;
	r = exec_case_want(at, exec->exe, exec->argv, &at->decision);
	if (r == 0 && reviewer_wants(gate->in.reviewer, VERDICT_ASK))
		r = exec_case_set(at, exec->exe, exec->argv);
	if (r == 0)
		at->cwd = exec_caller_link(exec->pid, "cwd", cwd) < 0 ? NULL : str_dup(cwd);
	return r;
}

/* A path that means something else to us is judged when its program is there. */
static int judge_program(struct exec_gate *gate, struct exec_case *at, const struct watch_exec *exec)
{
	struct decision decision, verified = verified_decision(at);
	struct chain chain;
	int r;

	chain.count = 0;
	r = judge_chain(gate, &chain, exec, at, &decision);
	if (r == 0 && verified.verdict < decision.verdict)
		decision = verified;
	if (r == 0 && decision.verdict != VERDICT_DENY && verified.verdict == VERDICT_ASK)
		r = chain.words.is_cut ? -E2BIG
				       : exec_case_want(at, chain.files[0].path, chain.words.list, &verified);
	if (r == 0 && decision.verdict != VERDICT_DENY)
		r = expect(gate, at, &chain, exec);
	chain_done(&chain);
	if (r == -ENOENT || r == -ENOTDIR || r == -EACCES || r == -ETXTBSY)
		at->errnum = -r;
	if (r == -ENOMEM)
		return r;
	/* What was found holds for a path as well that is judged when it is there; nobody could be asked about it. */
	if (r < 0 && verified.verdict < VERDICT_ALLOW)
		decision = verified.verdict == VERDICT_DENY ? verified : exec_refuse_cut();
	else if (r < 0)
		decision = (struct decision){ VERDICT_ALLOW, { "builtin.image", "", 0 }, "judged when it is there", "",
					      NULL };
	at->decision = decision;
	return 0;
}

int exec_judge(struct exec_gate *gate, struct exec_case *at, const struct watch_exec *exec)
{
	return gate->judges_programs ? judge_program(gate, at, exec) : judge_finding(gate, at, exec);
}
