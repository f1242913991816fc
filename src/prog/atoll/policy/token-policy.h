/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * `atoll token mint -p POLICY`: what that policy's own rules let happen, or would ask about, beyond the shipped level
 * that it stands on, as words for --allow. It mints nothing and judges no token.
 */

#include "base/cleanup.h"
#include "base/err.h"
#include "base/options.h"

/*
 * Adds to allow, whose texts live as long as the program. What no token can say (patterns, exceptions, address ranges)
 * is told on stderr and left out: the token has less, never more. 0; 1: atoll-policy has told what is wrong; negative
 * with *err, also where nothing is left or it is too much.
 */
int token_policy_words(const char *policy, const char *project, struct option_list *allow, struct err *err) MUST_USE;
