/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether a path of `http:` in a rule is about a request. Rules that refuse (deny, ask, simulate) take more than those
 * that allow: letters of ASCII in either case, and a slash at the end or none, as servers differ in both. Pure; for the
 * decision function.
 */

#include <stdbool.h>

#include "policy/decide.h"

/*
 * pattern: a glob; is_refusing: of a rule that denies, asks or simulates. request->path_kind says how much of the path
 * is known.
 */
bool request_path_matches(const struct action *request, const char *pattern, bool is_refusing);
