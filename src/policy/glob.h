/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Globs beyond glob_match() of decide.h: how deep a pattern matches into a path, and whether it is
 * well formed. Pure; used by the decision function and the policy compiler.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* Whether it matches path or something above it, letters of ASCII in either case. */
bool glob_matches_caseless(const char *pattern, const char *path);

/* glob_match(), letters of ASCII in either case. A text of more than 8 KiB is matched as it is. */
bool glob_match_caseless(const char *pattern, const char *text);

/* Whether it matches a directory and all that can be below it: a trailing "**" does. */
bool glob_covers_below(const char *pattern, const char *directory);

/* Whether it may match a directory or something below it, letters of ASCII in either case. */
bool glob_may_match_inside(const char *pattern, const char *directory);

/*
 * Whether all that the pattern matches below the directory from, it would match in the same place below to: else who
 * renames one to the other takes names out of the pattern. Letters of ASCII in either case.
 */
bool glob_keeps_below(const char *pattern, const char *from, const char *to);

/* How the components of a path end: most globs can be told not to match by that alone. */
enum { GLOB_ENDING_BITS = 4096 };
struct glob_endings {
	uint64_t bits[GLOB_ENDING_BITS / 64];
};
/* One bit for the ending of each component of path, for glob_may_match_below(). */
void glob_endings_of(const char *path, struct glob_endings *ret_endings);

/* How what a pattern matches must end, for glob_may_match_below(); 0: anyhow. */
unsigned glob_ending(const char *pattern);

/* False: a pattern with this ending matches neither the path nor anything above it, in whatever case of letters. */
static inline bool glob_may_match_below(unsigned ending, const struct glob_endings *endings)
{
	return !ending || endings->bits[(ending - 1) / 64] >> (ending - 1) % 64 & 1;
}

/* Whether text has *, ?, [ or a backslash, so that it is a glob and not a path. */
bool glob_is_pattern(const char *text);

/*
 * A path that the well-formed pattern matches, in out[strlen(pattern) + 1]: stars as "x", of a set one of its members.
 * False: a set that no character is in.
 */
bool glob_sample(const char *pattern, char *out);

/* NULL, or one sentence on what is wrong: unclosed set, "**" inside a component, too long. */
const char *glob_problem(const char *pattern);
