/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A policy in plain words for the one who is confined by it: /run/atoll/limits.md. Agents that know
 * their limits do not thrash against them. Pure; runs in atoll-box.
 */

#include "base/buf.h"
#include "policy/policy.h"

/* Whether the host has this path. */
typedef bool (*policy_is_there)(const char *path);

/*
 * Appends Markdown to out. An optional path that the host does not have (is_there; NULL: it has all) is described as
 * what is around it, which it then is. 0, or the buffer's sticky error.
 */
int policy_describe(const struct policy *policy, policy_is_there is_there, struct buf *out) MUST_USE;
