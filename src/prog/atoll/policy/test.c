/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/policy/test.h"

#include <limits.h>
#include <string.h>

#include "base/str.h"
#include "client/find.h"
#include "client/program.h"
#include "client/session-policy.h"
#include "learn/learn.h"
#include "os/fd.h"
#include "prog/atoll/policy/subverbs.h"
#include "session/directories.h"

int policy_hand_over(const struct compiled *compiled)
{
	int fd = fd_memfd_sealed("snapshot", compiled->bytes, compiled->size);

	return fd < 0 ? fd : fd_move_above(fd, LEARN_POLICY_FD + 1);
}

int policy_try(const struct policy_trial *trial, struct err *err)
{
	char log[PATH_MAX], before[PATH_MAX];
	const char *argv[] = { "atoll-learn", "test",
			       trial->json ? "json" : trial->is_told ? "differences" : "text", log, before,
			       trial->record->id, trial->policy, NULL };
	struct program program = { .name = "atoll-learn", .argv = argv, .fd_count = 1 };
	cleanup_fd int fd = FD_NONE;
	int r = session_path(trial->state, trial->record->id, "audit.jsonl", log, sizeof log);

	if (r == 0)
		r = session_path(trial->state, trial->record->id, "policy.bin", before, sizeof before);
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "policy", "the session's path is too long");
	fd = policy_hand_over(trial->compiled);
	if (fd < 0)
		return err_set(err, ERR_INTERNAL, -fd, "policy", "the policy cannot be passed on: %s",
			       strerror(-fd));
	program.fds[0].from = fd;
	program.fds[0].to = LEARN_POLICY_FD;
	program.fds[1].from = STDERR_FILENO;
	program.fds[1].to = STDOUT_FILENO;
	program.fd_count += trial->is_told;
	return program_run(&program, err);
}

static int test_one(const char *state, const char *policy, const char *session, bool json, struct err *err)
{
	cleanup_session_record struct session_record record = { 0 };
	cleanup_compiled struct compiled compiled = { 0 };
	struct policy_trial trial = { .state = state, .record = &record, .compiled = &compiled, .policy = policy,
				      .json = json };
	int r = find_session(state, session, &record, err);

	if (r == 0)
		r = session_policy_compile(&record, policy, &compiled, err);
	if (r != 0)
		return r < 0 ? r : err_exit_status(&(struct err){ .code = ERR_POLICY });
	return policy_try(&trial, err);
}

/* Of several sessions: that one differs says more than that of another it cannot be known. */
static int worse(int a, int b)
{
	return a == LEARN_DIFFERS || b == LEARN_DIFFERS ? LEARN_DIFFERS : a ? a : b;
}

int policy_test(char **words, bool json, struct err *err)
{
	char state[PATH_MAX];
	char **sessions = words + 1;
	int result = 0, r;

	if (!words[0]) {
		err_set(err, ERR_USAGE, EINVAL, "policy", "test takes a policy, and sessions");
		err_hint(err, "atoll policy test POLICY [SESSION…]; `atoll ps -a` lists sessions");
		return -EINVAL;
	}
	r = session_state_dir(state, sizeof state, false, err);
	if (r < 0)
		return r;
	do {
		r = test_one(state, words[0], words[1] ? *sessions : NULL, json, err);
		if (r != 0 && r != LEARN_DIFFERS && r != LEARN_UNKNOWN)
			return r;
		result = worse(result, r);
	} while (words[1] && *++sessions);
	return result;
}
