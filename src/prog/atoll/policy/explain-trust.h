/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * `atoll policy explain trust [AGENT]`: which trust level a run would have now under a policy and why, what the record
 * of its agent has to do with it, and what other records and confidences would come to. Changes nothing. Used by
 * `atoll`.
 */

#include "base/err.h"
#include "client/dirs.h"
#include "policy/policy.h"

/* agent: NULL: the policy's, or nobody's. Prints. Negative with *err. */
int policy_explain_trust(const struct policy *policy, const struct dirs *dirs, const char *agent, bool is_json,
			 struct err *err) MUST_USE;
