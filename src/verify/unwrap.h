/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The table of programs that start another one: which of their words are that command.
 * Only in atoll-verify; pure.
 */

#include "verify/operation.h"

enum wrapped_kind {
	WRAPPED_NONE,    /* starts nothing: `env` alone, or not a wrapper */
	WRAPPED_COMMAND, /* words [first, end) are a command */
	WRAPPED_SHELL,   /* words [first, end), joined by spaces, are code for a shell: watch, ssh, su -c, env -S */
};

struct wrapped {
	enum wrapped_kind kind;
	size_t first, end;
	uint32_t context;     /* what holds inside: CONTEXT_ROOT, … */
	bool takes_input;     /* its arguments also come from standard input: xargs, parallel */
	bool has_assignments; /* words before first may be NAME=VALUE: env, sudo */
};

/* What a command of these words starts. The words need not be exact; what is not counts as an argument. */
struct wrapped unwrap_command(const struct word *words, size_t count);

/* Names of the programs that start others, borrowed; at most max. */
size_t unwrap_programs(const char **names, size_t max);

/* The base name of a command's program; "" for none. */
const char *program_name(const struct word *words, size_t count);

/*
 * Steps over one option at words[at]: how many words it takes (2 where its value is the next one). valued: the short
 * options that have a value ("nG") and long ones, separated by spaces: "n s --signal". 0: no option.
 */
size_t option_size(const struct word *words, size_t count, size_t at, const char *valued);

/* Whether a short option letter (0: none), alone or in a cluster, or the long one (NULL: none) stands in the words. */
bool option_given(const struct word *words, size_t count, char letter, const char *long_option);
