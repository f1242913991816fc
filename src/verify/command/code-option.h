/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Programs that are no interpreters, and start code that an option or an operand of theirs has: editors, debuggers,
 * archivers, clients of databases. Which they are stands in policies/verify/programs.yaml. Only for command.c. Pure.
 */

#include "verify/model/tables.h"

/*
 * Whether the word at `at` (1 or more) of a command is such code. *ret_code: it without what stands before, its text
 * borrowed from the word; *ret_language: what it is written in.
 */
bool code_option(const struct tables *tables, const struct word *words, size_t at, struct word *ret_code,
		 enum verify_language *ret_language);
