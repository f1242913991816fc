/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Programs that start another one: which of their words are that command. Most of them are rows of tables.h.
 * Only in atoll-verify; pure.
 */

#include "verify/model/tables.h"

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
struct wrapped unwrap_command(const struct tables *tables, const struct word *words, size_t count);

/* Names of those that start others and are in no table, static; at most max. */
size_t unwrap_programs(const char **names, size_t max);
