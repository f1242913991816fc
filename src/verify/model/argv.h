/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The words of a command as getopt(3) would read them: its program and its options. What they mean to a program is in
 * the tables of effects.c and unwrap.c. Pure.
 */

#include "verify/model/operation.h"

/* The base name of a command's program; "" for none. */
const char *program_name(const struct word *words, size_t count);

/*
 * Steps over one option at words[at]: how many words it takes (2 where its value is the next one). valued: the short
 * options that have a value ("nG") and long ones, separated by spaces: "n s --signal". 0: no option.
 */
size_t option_size(const struct word *words, size_t count, size_t at, const char *valued);

/* Whether a short option letter (0: none), alone or in a cluster, or the long one (NULL: none) stands in the words. */
bool option_given(const struct word *words, size_t count, char letter, const char *long_option);

/* Whether a list of names separated by single spaces has this one. */
bool names_have(const char *list, const char *name, size_t size);
