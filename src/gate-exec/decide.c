/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-exec/decide.h"

#include <sys/statvfs.h>

#include "approve/queue.h"
#include "base/str.h"
#include "gate-exec/case.h"
#include "gate-exec/dry-run.h"
#include "gate-exec/file.h"
#include "gate-exec/programs.h"
#include "os/clock.h"
#include "policy/decide-exec.h"
#include "supervise/run.h"

enum { REFRESH_NS = 1000000000 };

struct decision exec_refuse_unknown(void)
{
	return (struct decision){ VERDICT_DENY, { "builtin.program", "", 0 },
				  "it is not known which program this is, because it cannot be read",
				  "a program must be readable where programs are judged", NULL };
}

struct decision exec_refuse_cut(void)
{
	return (struct decision){ VERDICT_DENY, { "builtin.arguments", "", 0 },
				  "it has more arguments than can be judged, or longer ones",
				  "put them into a file, if the program can read one", NULL };
}

struct decision exec_decide(struct exec_gate *gate, const struct exec_file *file, const struct exec_words *words,
			    bool is_held)
{
	const char *names[PROGRAM_NAMES_MAX + 1];
	struct action action = {
		.kind = ACTION_EXEC, .subject = file->path, .argv = words ? words->list : NULL, .names = names,
		.is_unnamed = file->is_unnamed, .is_cut = words && words->is_cut,
	};
	struct decision decision;
	uint64_t now_ns;

	if (programs_identify(gate->programs, file->fd, &file->st, is_held, names) < 0)
		return exec_refuse_unknown();
	decision = policy_decide(gate->in.run->policy->policy, &action);
	now_ns = decision.verdict == VERDICT_ALLOW ? 0 : clock_monotonic_ns();
	/* An upgrade of the system may have exchanged a program that nothing inside can. */
	if (now_ns < gate->refreshed_ns + REFRESH_NS)
		return decision;
	gate->refreshed_ns = now_ns;
	programs_refresh(gate->programs);
	if (programs_identify(gate->programs, file->fd, &file->st, is_held, names) < 0)
		return exec_refuse_unknown();
	return policy_decide(gate->in.run->policy->policy, &action);
}

struct decision exec_decide_loader(const struct policy *policy, const char *path)
{
	static const struct decision fine = { VERDICT_ALLOW, { "builtin.place", "", 0 }, "", "", NULL };
	struct action action = { .kind = ACTION_FILE_READ, .subject = path };
	struct decision decision = *path ? policy_decide(policy, &action) : fine;

	if (decision.verdict != VERDICT_ASK && !decision.is_masked)
		return fine;
	decision.verdict = VERDICT_DENY;
	decision.reason = "the file that it names as its loader may not be read";
	return decision;
}

/* The denied program that is called so, or NULL. */
static const char *denied_program(const struct policy *policy, const char *path)
{
	const char *name = path_basename(path);

	for (size_t i = 0; i < policy->exec.count; i++)
		if (exec_rule_is_mounted(&policy->exec.rules[i]) &&
		    str_equal(path_basename(policy->exec.rules[i].program), name))
			return policy->exec.rules[i].program;
	return NULL;
}

/* What the mounts put into the place of a denied program: nobody can give it a name or a permission. */
static bool is_stand_in(const struct exec_file *file)
{
	return !file->st.st_nlink && !(file->st.st_mode & 07777) && !file->st.st_size;
}

static bool is_refused_by_mount(const struct exec_file *file)
{
	struct statvfs place;

	return S_ISREG(file->st.st_mode) && (file->st.st_mode & 0111 || is_stand_in(file)) &&
	       fstatvfs(file->fd, &place) == 0 && place.f_flag & ST_NOEXEC;
}

bool exec_place_refuses(const struct exec_gate *gate, const struct watch_exec *exec, struct decision *ret_decision)
{
	const struct policy *policy = gate->in.run->policy->policy;
	const char *denied = denied_program(policy, exec->exe);
	struct exec_file file = EXEC_FILE_NONE;
	struct action action = { .kind = ACTION_EXEC, .subject = file.path };
	bool is_refused;

	if (gate->judges_programs || (policy->exec.new_binaries && !denied))
		return false;
	is_refused = exec_file_find(&file, exec) == 0 && is_refused_by_mount(&file);
	if (denied && is_stand_in(&file))
		action.subject = denied;
	else
		action.is_unnamed = file.is_unnamed;
	if (is_refused)
		*ret_decision = policy_decide(policy, &action);
	exec_file_done(&file);
	/* A place of the sandbox's own that no rule lists: what is there was made inside. */
	if (is_refused && ret_decision->verdict != VERDICT_DENY)
		*ret_decision = (struct decision){ VERDICT_DENY, { "exec.new_binaries", "", 0 },
						   "nothing that lies there can be executed",
						   "run a script by its interpreter, or a listed program", NULL };
	return is_refused;
}

struct decision exec_decision_of(const struct queue_outcome *outcome)
{
	return (struct decision){ outcome->verdict == QUEUE_ALLOWED ? VERDICT_ALLOW : VERDICT_DENY, outcome->rule,
				  outcome->reason, outcome->hint, NULL };
}

void exec_drop_case(struct exec_gate *gate, struct exec_case *exec_case)
{
	exec_dry_run_forget(gate->trials, exec_case->token);
	exec_case_free(&gate->cases, exec_case);
}
