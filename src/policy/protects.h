/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which paths are flagged: those that the session's policy protects (files.protect) or asks a person for. The verdict
 * is policy_decide()'s; here stands the index that spares the question for all but a few of 100,000 paths.
 */

#include <stdbool.h>

#include "base/cleanup.h"
#include "policy/policy.h"

struct protects;

/* policy is borrowed. NULL when out of memory. */
struct protects *protects_new(const struct policy *policy) MUST_USE;
void protects_free(struct protects *protects);

/* path: absolute. One that is longer than a policy can decide about is flagged. */
bool protects_has(const struct protects *protects, const char *path);

/* Whether the last component of path is the name of a directory in a protected pattern (`.git` of .git/hooks). */
bool protects_has_above(const struct protects *protects, const char *path);
