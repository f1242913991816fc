/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Patterns of plain text: "*" any text, "?" a byte, "[a-z]" and "[!a-z]" one of a set, "\\" the next byte as it is. As
 * fnmatch(3) in the C locale, in time that is the product of both lengths at worst: who writes a text chooses what is
 * compared, and fnmatch(3) goes back to every "*" there is. Pure.
 */

#include <stdbool.h>

/* Whether all of text is what the pattern says; folds_case: whatever the case of either. */
bool pattern_match(const char *pattern, const char *text, bool folds_case);
