/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The differences of two policies as a list, by decisions and not by text. Private to lang/: diff.c finds them,
 * diff-text.c writes them down.
 */

#include "lang/yaml/arena.h"
#include "policy/policy.h"

struct change {
	const char *dimension; /* "file.write" */
	const char *subject;
	const char *from, *to; /* verdicts, limits */
	bool allows;
};

/* a and b are borrowed, the rest is made by diff_compare() and freed with the arena. */
struct differ {
	struct arena arena;
	const struct policy *a, *b;
	struct vec changes; /* struct change */
};

/* Fills changes, those of one dimension behind one another. The arena says whether there was memory. */
void diff_compare(struct differ *differ);
