/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Globs beyond glob_match() of decide.h: how deep a pattern matches into a path, and whether it is
 * well formed. Pure; used by the decision function and the policy compiler.
 */

#include <stdbool.h>
#include <stddef.h>

enum {
	GLOB_SIZE_MAX = 1024,
	GLOB_COMPONENTS_MAX = 60, /* one bit of a machine word each */
};

/*
 * The number of components of the longest prefix of path that the pattern matches, on component
 * boundaries: what the pattern names and all below it. A trailing "**" adds nothing and is not counted.
 * -1: no match.
 */
int glob_match_below(const char *pattern, const char *path);

/* Whether text has *, ?, [ or a backslash, so that it is a glob and not a path. */
bool glob_is_pattern(const char *text);

/* NULL, or one sentence on what is wrong: unclosed set, "**" inside a component, too long. */
const char *glob_problem(const char *pattern);
