/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/policy-of.h"

#include <limits.h>
#include <string.h>

#include "prog/atoll/places.h"

int policy_of_session(const struct session_record *record, const char *policy, struct compiled *ret_compiled,
		      struct err *err)
{
	char absolute[PATH_MAX];
	struct places places;
	struct compiled_request request = {
		.policy = policy,
		.project = places.project,
		.home = places.home,
		.config_home = places.config_home,
		.programs_dir = places.programs,
		.state_dir = places.state,
		.runtime_dir = places.runtime,
	};
	int r = places_find(&places, record->project, NULL, err);

	if (r == 0 && strchr(policy, '/')) {
		r = places_absolute(policy, "policy", absolute, err);
		request.policy = absolute;
	}
	return r == 0 ? compiled_get(&request, ret_compiled, err) : r;
}
