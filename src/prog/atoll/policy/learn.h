/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * `atoll policy learn`: runs a command with everything recorded, and proposes the smallest policy that would have
 * allowed what it did. What the proposal is made of is read by atoll-learn, which confines itself first.
 */

#include "base/cleanup.h"
#include "base/err.h"

struct learn_request {
	const char *policy;      /* -p, or NULL */
	const char *trust;       /* -t, or NULL */
	const char *output;      /* a file that is made; NULL: stdout */
	char **command;          /* NULL-terminated */
};

/* The exit status: 0 where there is a proposal that was seen to hold; else 125 and the like, or negative with *err. */
int policy_learn(const struct learn_request *request, struct err *err) MUST_USE;
