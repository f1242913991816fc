/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The environment inside: an allow-list over the caller's, what the policy sets, and what atoll sets. Pure.
 * Run by atoll-box for the first command and for each `atoll exec`.
 */

#include "base/cleanup.h"
#include "policy/policy.h"

struct environment_input {
	const struct policy *policy;
	const char *const *caller; /* NAME=value of the caller, filtered by env.pass */
	const char *const *added;    /* NAME=value of -e: set whatever the policy passes; may be NULL */
	const char *const *kept;     /* as added, of the run, for a later command of it; may be NULL */
	const char *const *fallback; /* as caller, the run's own: who the user is, and what caller lacks; may be NULL */
	const char *const *placeholders; /* NAME=text in the place of secrets that stay outside; may be NULL */
	bool trusts_gate;            /* with the variables that make programs trust the network gate */
	const char *const *forced; /* NAME=value that atoll sets; wins over everything; may be NULL */
};

/* Whether the policy passes a variable of this name (env.pass; a trailing * is a prefix). */
bool environment_passes(const struct policy *policy, const char *name, size_t name_size);

/*
 * A new NULL-terminated vector: forced, placeholders, added, kept, then env.set, then what makes programs trust the
 * network gate where it reads requests, then what env.pass lets through: of fallback who the user is (USER, LOGNAME),
 * all of caller, the rest of fallback. Each name once, the first one wins. The vector and its
 * strings are owned (strv_free). NULL when out of memory.
 */
char **environment_make(const struct environment_input *input) MUST_USE;
