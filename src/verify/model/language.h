/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The languages of texts: their names, who reads them, and how that of a text is guessed. Who walks one is known to
 * walkers.h. Only in atoll-verify; pure.
 */

#include <stddef.h>

enum verify_language {
	LANGUAGE_UNKNOWN, /* to be guessed */
	LANGUAGE_SHELL,
	LANGUAGE_PYTHON,
	LANGUAGE_JAVASCRIPT,
	LANGUAGE_OTHER,   /* known not to be one of them */
	LANGUAGE_COUNT,
};

/* Static: "shell", "unknown". */
const char *language_name(enum verify_language language);

/* Of the three that are read; -1 for any other name. */
int language_from_name(const char *text);

/*
 * What a text is, by its `#!` line, the file's name (may be NULL), or what stands in it; LANGUAGE_OTHER where it has a
 * `#!` of something else or is no text. LANGUAGE_UNKNOWN is never returned.
 */
enum verify_language language_guess(const char *name, const void *bytes, size_t size);

/* Names of the programs that read code, borrowed; at most max. */
size_t language_interpreters(const char **names, size_t max);

/*
 * The language that a program of this name reads ("bash", "python3.11", "node"); LANGUAGE_UNKNOWN: none;
 * LANGUAGE_OTHER: perl, ruby, ….
 */
enum verify_language language_of_interpreter(const char *program);
