/* SPDX-License-Identifier: Apache-2.0 */
#include "jail/mediation.h"

#include "policy/decide.h"

enum jail_mediation jail_mediation_of(const struct policy *policy)
{
	static const enum jail_mediation by_depth[AUDIT_DEPTH_COUNT] = {
		[AUDIT_OFF] = JAIL_MEDIATE_NOTHING,
		[AUDIT_WRITES] = JAIL_MEDIATE_WRITES,
		[AUDIT_ALL] = JAIL_MEDIATE_ALL,
	};

	enum jail_mediation mediation = by_depth[policy->audit.files];

	if (policy_gates_reads(policy) || policy->rates[RATE_FILE_READ].amount)
		return JAIL_MEDIATE_ALL;
	if (mediation != JAIL_MEDIATE_NOTHING)
		return mediation;
	if (policy_gates_writes(policy) || policy->rates[RATE_FILE_WRITE].amount)
		return JAIL_MEDIATE_WRITES;
	return policy_stages_any(policy) ? JAIL_MEDIATE_MOVES : JAIL_MEDIATE_NOTHING;
}
