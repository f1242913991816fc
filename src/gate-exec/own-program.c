/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-exec/own-program.h"

#include <limits.h>

#include "base/str.h"
#include "policy/decide.h"
#include "session/host-program.h"
#include "supervise/run.h"

static bool is_out_of_reach(const struct policy *policy, const char *path)
{
	size_t rule;

	return policy_classify(policy, path, &rule) == FILE_READ &&
	       !(policy->project[0] && path_is_below(path, policy->project));
}

struct own_program own_program_find(const struct run *run)
{
	const struct policy *policy = run->policy->policy;
	struct own_program own = { .is_known = false };
	char path[PATH_MAX];

	if (!policy->agent.command)
		return own;
	host_program_find(run->request, policy->agent.command[0], path);
	own.is_known = *path && is_out_of_reach(policy, path) && stat(path, &own.st) == 0 && S_ISREG(own.st.st_mode);
	return own;
}

bool own_program_is(const struct own_program *own, const struct stat *st)
{
	return own->is_known && st->st_dev == own->st.st_dev && st->st_ino == own->st.st_ino &&
	       st->st_size == own->st.st_size && st->st_ctim.tv_sec == own->st.st_ctim.tv_sec &&
	       st->st_ctim.tv_nsec == own->st.st_ctim.tv_nsec;
}
