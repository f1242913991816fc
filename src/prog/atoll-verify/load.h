/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Finding and reading rule files, before the program confines itself: the shipped ones beside it, the user's own in
 * verify/ of atoll's configuration, and those that were named.
 */

#include "base/err.h"
#include "verify/rules/rule.h"

enum { RULE_FILE_MAX = 4 << 20, RULE_FILES_MAX = 256 };

/*
 * All rules; *err says what is wrong with them: ERR_USAGE for text, whose errors are in diags. files: paths that
 * were named, NULL-terminated.
 */
struct rules *load_rules(const char *const *files, bool with_own, struct diags *diags, struct err *err) MUST_USE;
