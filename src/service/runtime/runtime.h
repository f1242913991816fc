/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The drivers of the code interpreter (runtimes/): how each is started in a sandbox, and its text, which it reads
 * first. Pure. Used by atoll-front, and by atolld, which starts some ahead.
 */

#include <stddef.h>

#include "base/cleanup.h"

enum { RUNTIME_ARGV_MAX = 20, RUNTIME_SIZE_MAX = 24, RUNTIME_MARK_SIZE = 32 };

/* How a driver reads what it is asked for. */
enum runtime_form {
	RUNTIME_JSON,
	RUNTIME_QUOTED,              /* words for a shell */
	RUNTIME_COUNTED,             /* words behind their sizes, for a language without JSON */
};

struct runtime {
	const char *language;
	const char *const *argv;     /* its size and its mark follow */
	const unsigned char *text;
	size_t size;
	enum runtime_form form;
	const char *needs;           /* what must be installed, for people */
};

/* The driver of a language, static; NULL: there is none. */
const struct runtime *runtime_find(const char *language);

/* A mark that no other driver has, for its frames: behind 0x1e. */
int runtime_make_mark(char out[RUNTIME_MARK_SIZE]) MUST_USE;

/* Languages whose drivers may start before anybody wants them; NULL behind the last one. The first always does. */
extern const char *const runtime_ahead[];

/* Its command line; size is memory for a word of it. */
void runtime_command(const struct runtime *runtime, const char *mark, char size[RUNTIME_SIZE_MAX],
		     const char *ret_argv[RUNTIME_ARGV_MAX]);
