/* SPDX-License-Identifier: Apache-2.0 */
#include "client/session-policy.h"

#include <limits.h>
#include <string.h>

#include "base/names.h"
#include "client/dirs.h"

/* lowered: the level that stands for the policy's; NULL: none. */
static int compile(const struct session_record *record, const char *policy, const char *lowered,
		   struct compiled *ret_compiled, struct err *err)
{
	char absolute[PATH_MAX];
	struct dirs dirs;
	struct compiled_request request = {
		.level = lowered,
		.is_lowered = lowered != NULL,
		.policy = policy,
		.project = dirs.project,
		.home = dirs.home,
		.config_home = dirs.config_home,
		.programs_dir = dirs.programs,
		.state_dir = dirs.state,
		.runtime_dir = dirs.runtime,
	};
	int r = dirs_find(&dirs, record->project, NULL, err);

	if (r == 0 && strchr(policy, '/')) {
		r = dirs_absolute(policy, "policy", absolute, err);
		request.policy = absolute;
	}
	return r == 0 ? compiled_get(&request, ret_compiled, err) : r;
}

int session_policy_compile(const struct session_record *record, const char *policy,
			   struct compiled *ret_compiled, struct err *err)
{
	return compile(record, policy, NULL, ret_compiled, err);
}

int session_policy_compile_lowered(const struct session_record *record, const char *policy,
				   struct compiled *ret_compiled, struct err *err)
{
	int level = record->is_lowered ? names_find(trust_level_names, TRUST_COUNT, record->level) : -1;
	cleanup_compiled struct compiled own = { 0 };
	const struct policy *found;
	int r = compile(record, policy, NULL, &own, err);

	if (r != 0)
		return r;
	found = snapshot_policy(own.snapshot);
	if (level >= 0 && found->trust.has_level && level < (int)found->level)
		return compile(record, policy, record->level, ret_compiled, err);
	*ret_compiled = own;
	own = (struct compiled){ 0 };
	return 0;
}
