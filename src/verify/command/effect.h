/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One operation beside a command: what it does to a path. Which commands do what is in effects.c; Python and JavaScript
 * have the same paths.
 */

#include "verify/parse/walk.h"

/* The path as a word: relative ones are below the walk's directory where that is known. */
struct word effect_path(struct walk *walk, const struct word *word);

/* Adds an effect of the command, operation index, where it stands: one word. Its number, or OPERATION_NONE. */
uint32_t effect_add(struct walk *walk, uint32_t index, enum operation_kind kind, const struct word *word,
		    uint32_t traits);

/*
 * Adds what the command, operation index, does to one path; returns its number. What is read flows into the command,
 * what is written comes from it.
 */
uint32_t effect_on(struct walk *walk, uint32_t index, enum operation_kind kind, const struct word *path,
	uint32_t traits);
