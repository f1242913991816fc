/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Command-line options from a table: parsing, the help text and the completion scripts all come from the
 * same rows. GNU style: -x, -xVALUE, -x VALUE, --long, --long=VALUE, --long VALUE, -- ends them; the first
 * word that is not an option ends them too (so `run make -j2` gives -j2 to make).
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

enum option_kind {
	OPTION_FLAG,        /* bool */
	OPTION_TEXT,        /* const char *, borrowed from argv; the last one wins */
	OPTION_MAYBE,       /* the same, and "" where it stands alone: its value only comes as --long=VALUE */
	OPTION_LIST,        /* struct option_list: every one of them, in order */
	OPTION_COUNT_KIND,
};

enum { OPTION_LIST_MAX = 64 };

struct option_list {
	const char *values[OPTION_LIST_MAX];
	size_t count;
};

struct option {
	char short_name;         /* 0: none */
	const char *long_name;
	const char *argument;    /* "FILE"; NULL for flags; of OPTION_MAYBE without its brackets */
	const char *help;        /* one line */
	enum option_kind kind;
	size_t offset;           /* into the verb's own struct */
};

/*
 * Parses argv[1…]. *ret_rest is the index of the first word that is not an option (argc when there is none).
 * With permute, options may also stand between and behind the words (for verbs that run no command):
 * argv is reordered in place, words last. -EINVAL with *err: unknown option (the nearest name is in the
 * hint), a missing or an unwanted value. "--help" is in no table: 1 is returned when it was given.
 */
int options_parse(const struct option *options, size_t count, void *target, int argc, char **argv, bool permute,
		  int *ret_rest, struct err *err) MUST_USE;

/* Writes the aligned list "  -p, --policy POLICY   use this policy" to the fd. */
int options_print(const struct option *options, size_t count, int fd) MUST_USE;

/* The same to the standard output, below a title that ends in an empty line. */
int options_help(const char *title, const struct option *options, size_t count) MUST_USE;
