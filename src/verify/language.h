/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The table of languages: name, grammar, walker; and how a text's language is guessed.
 * Only in atoll-verify; pure.
 */

#include "verify/walk.h"

struct language {
	const char *name;
	const TSLanguage *(*grammar)(void); /* NULL: not parsed */
	void (*walk)(struct walk *walk, TSNode root);
};

/* Static; never NULL. */
const struct language *language_get(enum verify_language language);

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
