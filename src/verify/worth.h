/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which commands are worth being judged at all: an exec of any other one can lead to no finding, so that whoever
 * starts programs (atoll-box) need not ask. Derived from the rules and the tables of programs; pure.
 */

#include "verify/rules/rule.h"

/*
 * Globs, each once, in the order of strcmp(3). A command is worth judging where the base name of its program matches
 * one of programs; or the path of its program, or an argument, one of words (case does not matter, `*` is any text).
 */
struct worth {
	struct vec programs, words; /* of const char *: borrowed from the rules, the tables and the arena */
};

/* Finished or restored rules. What was added before arena->has_failed is there. */
struct worth worth_of(const struct rules *rules, struct arena *arena);
