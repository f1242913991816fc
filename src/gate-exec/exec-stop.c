/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-exec/gate.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "approve/queue.h"
#include "approve/reviewer.h"
#include "base/str.h"
#include "gate-exec/arguments.h"
#include "gate-exec/case.h"
#include "gate-exec/decide.h"
#include "gate-exec/file.h"
#include "gate-exec/log.h"
#include "policy/decide.h"
#include "supervise/run.h"
#include "watch/watch.h"

/*
 * The second judgement of an exec (gate.c says why there are two): the new program is there, held at the stop
 * that ptrace makes, and not one instruction of it has run. What is not allowed is killed.
 */

/* Nobody can be waited for when the program is there already. */
static struct decision refuse_unverified(void)
{
	return (struct decision){ VERDICT_DENY, { "builtin.unverified", "", 0 },
				  "it is not what the external verifier was shown",
				  "start it by its path, and leave file and arguments alone meanwhile", NULL };
}

/* Whether it is exactly what was judged at first. */
static bool is_as_judged(const struct exec_case *exec_case, const struct exec_file *image,
			 const struct exec_words *words, pid_t pid)
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
static bool is_as_granted(const struct exec_case *exec_case, const struct exec_file *image,
			  const struct exec_words *words, pid_t pid)
{
	return exec_case->want_count && exec_case->granted_count == exec_case->want_count &&
	       is_as_judged(exec_case, image, words, pid);
}

/* Nobody can be waited for now: what was allowed before is, and the rest is listed for the next time. */
static int find_grant(struct exec_gate *gate, const struct exec_file *image, const struct exec_words *words, pid_t pid,
		      struct decision *decision)
{
	char cwd[PATH_MAX];
	struct queue_request request = {
		.action = { .kind = ACTION_EXEC, .subject = image->path, .argv = words->list },
		.decision = *decision, .pid = pid,
		.actor.cwd = exec_caller_link(pid, "cwd", cwd) < 0 ? "?" : cwd,
	};
	struct queue_outcome outcome;
	int r = queue_begin(gate->in.queue, &request, NULL, &outcome);

	if (r == 0)
		*decision = exec_decision_of(&outcome);
	return r;
}

static struct decision decide_script(struct exec_gate *gate, const struct exec_case *exec_case,
				     const struct exec_words *words)
{
	const char *const *rest = words->list + (exec_case->script.first_argument < words->count
						 ? exec_case->script.first_argument
											   : words->count);
	const char *list[EXEC_WORDS_MAX + 2] = { exec_case->script.called };
	struct action action = { .kind = ACTION_EXEC, .subject = exec_case->script.path, .argv = list,
				 .is_cut = words->is_cut };

	for (size_t i = 0; rest[i]; i++)
		list[i + 1] = rest[i];
	return policy_decide(gate->in.run->policy->policy, &action);
}

/* What was judged by what it would do must be what it does: another thread may have changed the arguments meanwhile. */
static bool is_as_verified(const struct exec_case *exec_case, const struct exec_words *words)
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

/* What the kernel has mapped by now; nobody can be waited for. */
static struct decision decide_mapped(const struct policy *policy, pid_t pid)
{
	char path[PATH_MAX];

	if (!policy_gates_reads(policy))
		return exec_decide_loader(policy, "");
	return exec_file_mapped(pid, path) < 0 ? exec_refuse_unknown() : exec_decide_loader(policy, path);
}

/* 0: *ret_decision; negative: the log failed. */
static int judge_image(struct exec_gate *gate, const struct exec_case *exec_case, const struct exec_file *image,
		       pid_t pid,
		       struct decision *ret_decision)
{
	char memory[WATCH_TEXT_MAX];
	struct exec_words words = { .count = 0 };
	bool has_words = gate->judges_arguments || exec_case->want_count || exec_case->verified ||
			 reviewer_wants(gate->in.reviewer, VERDICT_ASK);

	*ret_decision = exec_refuse_unknown();
	if (has_words && exec_words_read(pid, memory, &words) < 0)
		return 0;
	*ret_decision = decide_mapped(gate->in.run->policy->policy, pid);
	if (ret_decision->verdict == VERDICT_DENY)
		return 0;
	*ret_decision = exec_decide(gate, image, has_words ? &words : NULL, true);
	if (ret_decision->verdict > VERDICT_ASK && !is_as_verified(exec_case, &words))
		*ret_decision = refuse_changed();
	if (ret_decision->verdict > VERDICT_ASK && exec_case->script.path) {
		struct decision script = decide_script(gate, exec_case, &words);

		*ret_decision = script.verdict < ret_decision->verdict ? script : *ret_decision;
	}
	if (reviewer_wants(gate->in.reviewer, ret_decision->verdict) &&
	    (!exec_case->review.has_opinion || !is_as_judged(exec_case, image, &words, pid))) {
		*ret_decision = refuse_unverified();
		return 0;
	}
	if (ret_decision->verdict != VERDICT_ASK || is_as_granted(exec_case, image, &words, pid))
		return 0;
	if (!has_words && exec_words_read(pid, memory, &words) < 0)
		return 0;
	if (words.is_cut) {
		*ret_decision = exec_refuse_cut();
		return 0;
	}
	return find_grant(gate, image, &words, pid, ret_decision);
}

/* Takes the case. */
static int conclude_image(struct exec_gate *gate, struct exec_case *exec_case, const struct exec_file *image, pid_t pid)
{
	struct exec_entry entry = { .pid = pid, .subject = image->fd >= 0 ? image->path : exec_case->exe };
	bool is_expected = image->fd >= 0 && exec_case_is_expected(exec_case, &image->st);
	struct decision decision = exec_refuse_unknown();
	int r = image->fd >= 0 ? judge_image(gate, exec_case, image, pid, &decision) : 0;

	exec_drop_case(gate, exec_case);
	if (r < 0)
		return r;
	if (decision.verdict == VERDICT_DENY) {
		r = exec_log_refusal(gate, &entry, &decision);
		return r < 0 ? r : 1;
	}
	/* Another one than was written down, and as good. */
	return is_expected ? 0 : exec_log_start(gate, &entry, &decision);
}

int exec_gate_image(struct exec_gate *gate, uint64_t token, pid_t pid)
{
	struct exec_case *exec_case = exec_case_find(&gate->cases, token);
	struct exec_file image = EXEC_FILE_NONE;
	int r;

	if (exec_file_open_image(&image, pid) < 0)
		exec_file_done(&image);
	r = conclude_image(gate, exec_case, &image, pid);
	exec_file_done(&image);
	return r;
}

void exec_gate_over(struct exec_gate *gate, uint64_t token)
{
	struct exec_case *exec_case = exec_case_find(&gate->cases, token);

	if (exec_case)
		exec_drop_case(gate, exec_case);
}

int exec_gate_unheld(struct exec_gate *gate, uint64_t token, pid_t pid, int errnum)
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
		"something locks its file, or a thread of its process: release it, and try again", NULL,
	};
	struct exec_case *exec_case = exec_case_find(&gate->cases, token);
	struct exec_entry entry = { .pid = pid, .subject = exec_case->exe };
	int r = 0;

	if (errnum != ESRCH)
		r = exec_log_refusal(gate, &entry, errnum == EAGAIN ? &busy : errnum == ETIMEDOUT ? &late : &traced);
	exec_drop_case(gate, exec_case);
	return r;
}
