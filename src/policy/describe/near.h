/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a policy does allow that is like something it does not: for whoever was refused and looks for another way. It
 * decides nothing. Pure; runs in atoll-box.
 */

#include "policy/decide.h"

enum { POLICY_NEAR_MAX = 4 };

/* Places or hosts, the nearest first, borrowed from the policy. How many. */
size_t policy_near(const struct policy *policy, const struct action *action, const char *names[POLICY_NEAR_MAX]);
