/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Variables of the caller that a tool needs to reach its service (keys, addresses of servers) and that the policy does
 * not pass: named once, with what brings them. Their values are never shown. Used by atoll.
 */

struct buf;
struct policy;

struct dropped_variables {
	const struct policy *policy;
	char *const *caller;         /* NAME=value */
	char *const *added;          /* of -e; NULL: none */
	char *const *placeholders;   /* of secrets; NULL: none */
	const char *state_dir;       /* where it is kept what was said (said.h) */
};

/* Appends a line to told for each that was not named before. */
void dropped_variables_tell(const struct dropped_variables *of, struct buf *told);
