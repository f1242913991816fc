/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Programs that are no interpreters, and start code that an option or an operand of theirs has: editors, debuggers,
 * archivers, clients of databases. One table; GTFOBins has most of them. Only for command.c. Pure.
 */

#include "verify/model/language.h"
#include "verify/model/operation.h"

/*
 * Whether the word at `at` (1 or more) of a command is such code. *ret_code: it without what stands before, its text
 * borrowed from the word; *ret_language: what it is written in.
 */
bool code_option(const struct word *words, size_t count, size_t at, struct word *ret_code,
		 enum verify_language *ret_language);
