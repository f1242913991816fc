/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * `atoll policy test`: what a policy would have decided otherwise about what sessions did. The logs are read by
 * atoll-learn, which confines itself first.
 */

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"

/*
 * words: the policy, then sessions (none: the newest of the project). Returns 0 where nothing would differ,
 * LEARN_DIFFERS where something would, LEARN_UNKNOWN where that cannot be known, or negative with *err.
 */
int policy_test(char **words, bool json, struct err *err) MUST_USE;

struct session_record;
struct compiled;

/* The same of one session (of the state directory `state`) and a compiled policy. */
struct policy_trial {
	const char *state;
	const struct session_record *record;
	const struct compiled *compiled;
	const char *policy;      /* its name for people */
	bool json;
	bool is_told;            /* on stderr, and only where something would differ */
};
int policy_try(const struct policy_trial *trial, struct err *err) MUST_USE;

/* A compiled policy for atoll-learn: a sealed memfd above its place there, owned by the caller; -errno. */
int policy_hand_over(const struct compiled *compiled) MUST_USE;
