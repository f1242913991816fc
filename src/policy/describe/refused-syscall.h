/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is said of a refused system call. It is refused in any case; a program that wanted a sandbox of its own is told
 * which switch turns that off. Pure; runs in atoll-box and atoll-policy.
 */

#include "policy/decide.h"

/*
 * Of ACTION_SYSCALL: as policy_decide(), with a better reason and hint. action->argv has the caller's name (comm)
 * alone, or is NULL: a name changes the words and nothing else.
 */
struct decision policy_refuse_syscall(const struct policy *policy, const struct action *action);
