/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * `atoll policy set`: has a policy compiled for the project of a session that lives, and hands it to that session's
 * box, which decides whether it can be taken over.
 */

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"

/* words: [ID] POLICY, NULL-terminated. The exit status, or negative with *err. */
int policy_set(char **words, bool json, struct err *err) MUST_USE;
