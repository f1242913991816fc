/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The texts of limits, shared by policy_describe() and the programs that print policies. Pure. */

#include <stdint.h>

#include "policy/policy.h"

/* "4GiB", "1h30m", "1.5", "200k" or "unlimited", as policy text writes it. */
void limit_to_text(enum resource resource, uint64_t value, char out[32]);
