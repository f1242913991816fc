/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What `atoll policy learn` has of `atoll policy test` (subverbs.h): a proposal is tried on the session behind it, and
 * handed over to atoll-learn in the same way.
 */

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"

struct session_record;
struct compiled;

/* Of one session (of the state directory `state`) and a compiled policy. */
struct policy_trial {
	const char *state;
	const struct session_record *record;
	const struct compiled *compiled;
	const char *policy;      /* its name for people */
	bool json;
	bool is_told;            /* on stderr, and only where something would differ */
};
/* As policy_test(). */
int policy_try(const struct policy_trial *trial, struct err *err) MUST_USE;

/* A compiled policy for atoll-learn: a sealed memfd above its place there, owned by the caller; -errno. */
int policy_hand_over(const struct compiled *compiled) MUST_USE;
