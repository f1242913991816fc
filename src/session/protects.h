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

enum protects_verdict {
	PROTECTS_NOTHING = 0,
	PROTECTS_GIT,        /* as what lies in `.git` and is not data by its name alone */
	PROTECTS_PACKAGE,    /* where what a package.json has npm run differs */
	PROTECTS_ALWAYS,
};

/*
 * path: absolute. One that is longer than a policy can decide about is flagged. is_directory: it is one, and none takes
 * its place.
 */
enum protects_verdict protects_judge(const struct protects *protects, const char *path, bool is_directory);

/* Whether the policy has a rule about git's own directories. */
bool protects_knows_git(const struct protects *protects);

/* Whether the last component of path is the name of a directory in a protected pattern (`.git` of .git/hooks). */
bool protects_has_above(const struct protects *protects, const char *path);
