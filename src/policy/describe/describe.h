/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A policy in plain words for the one who is confined by it: /run/atoll/limits.md. Agents that know
 * their limits do not thrash against them. Pure; runs in atoll-box.
 */

#include "base/buf.h"
#include "policy/policy.h"

/* Appends Markdown to out. 0, or the buffer's sticky error. */
int policy_describe(const struct policy *policy, struct buf *out) MUST_USE;
