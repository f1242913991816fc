/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The words of a command line that is put together piece by piece: for the programs that do a verb's work. What fails
 * on the way is told at the end, by words_error().
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

struct option;

enum { WORDS_MAX = 64 << 10 };

struct words {
	char **list;         /* owned copies, NULL-terminated; NULL: none yet */
	size_t count, size;
	int error;           /* the first one: -ENOMEM; -E2BIG beyond WORDS_MAX */
};

/* Frees what it holds; a zeroed one is fine. */
void words_done(struct words *words);
#define cleanup_words __attribute__((cleanup(words_done)))

/* Appends copies. After an error they do nothing. */
void words_add(struct words *words, const char *text);
void words_add_all(struct words *words, const char *const *strv);
/* An option with its value: nothing where the value is NULL. */
void words_add_option(struct words *words, const char *option, const char *value);
/* An option without one, where it was given. */
void words_add_flag(struct words *words, bool is_given, const char *option);
/*
 * Every option of this table that was given (in target, by options_parse()), under its long name; of rows that set the
 * same field only the first. A value of OPTION_MAYBE that is "" goes without one.
 */
void words_add_options(struct words *words, const struct option *options, size_t count, const void *target);

/* 0; -ENOMEM, -E2BIG …: the first that any words_add…() met, after which nothing more was added. */
int words_error(const struct words *words) MUST_USE;
