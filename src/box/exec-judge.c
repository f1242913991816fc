/* SPDX-License-Identifier: Apache-2.0 */
#include "box/exec-judge.h"

#include "box/asking.h"
#include "box/exec-case.h"
#include "box/exec-file.h"
#include "box/exec-trial.h"
#include "box/programs.h"
#include "box/state.h"
#include "os/clock.h"
#include "policy/decide-exec.h"

enum { REFRESH_NS = 1000000000 };

struct decision exec_refuse_unknown(void)
{
	return (struct decision){ VERDICT_DENY, { "builtin.program", "", 0 },
				  "nobody can tell which program this is: it cannot be read",
				  "a program must be readable where programs are judged", NULL };
}

struct decision exec_refuse_cut(void)
{
	return (struct decision){ VERDICT_DENY, { "builtin.arguments", "", 0 },
				  "it has more arguments than can be judged, or longer ones",
				  "hand them over in a file, if the program takes one", NULL };
}

struct decision exec_decide(struct box *box, const struct exec_file *file, const struct exec_words *words,
			    bool is_held)
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
		return exec_refuse_unknown();
	decision = policy_decide(box->policy->policy, &action);
	now_ns = decision.verdict == VERDICT_ALLOW ? 0 : clock_monotonic_ns();
	/* An upgrade of the system may have exchanged a program that nothing inside can. */
	if (now_ns < gate->refreshed_ns + REFRESH_NS)
		return decision;
	gate->refreshed_ns = now_ns;
	programs_refresh(gate->programs);
	if (programs_identify(gate->programs, file->fd, &file->st, is_held, names) < 0)
		return exec_refuse_unknown();
	return policy_decide(box->policy->policy, &action);
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

struct decision exec_decision_of(const struct asking_outcome *outcome)
{
	return (struct decision){ outcome->verdict == ASKING_ALLOWED ? VERDICT_ALLOW : VERDICT_DENY, outcome->rule,
				  outcome->reason, outcome->hint, NULL };
}

void exec_drop_case(struct box *box, struct exec_case *exec_case)
{
	exec_trial_forget(box, exec_case->token);
	exec_case_free(&box->exec_gate->cases, exec_case);
}
