/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which file calls of a sandbox the box makes itself, by its policy. Pure: how the filter sends them is jail/filter.h.
 * Run by atoll-box.
 */

#include "jail/spec.h"
#include "policy/policy.h"

/* The least that can do what the policy wants logged, asked about, limited or staged. */
enum jail_mediation jail_mediation_of(const struct policy *policy);
