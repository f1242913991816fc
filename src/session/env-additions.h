/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The variables that a user adds on the command line of `atoll run` and `atoll exec`: -e NAME and -e NAME=VALUE.
 * They reach the command whatever the policy passes: the user widens his own policy in words.
 */

#include "base/cleanup.h"
#include "base/err.h"
#include "base/options.h"

enum { ENV_ADDITIONS_MAX = OPTION_LIST_MAX + 1 };

/*
 * NAME=value entries, NULL-terminated, the strings borrowed. NAME alone takes the caller's value and is left out
 * where there is none. ERR_USAGE for what is no name of a variable.
 */
int env_additions_make(const struct option_list *list, char *out[ENV_ADDITIONS_MAX], struct err *err) MUST_USE;
