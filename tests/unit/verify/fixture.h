/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Walks texts in memory and compares what they do with what was expected, as lines of text
 * (operation-text.h). For the unit tests of verify/ alone; what cannot happen ends the test.
 */

#include <stddef.h>

#include "verify/walkers.h"

struct fixture_case {
	const char *name;
	const char *text;
	const char *operations; /* all lines of operations_put() */
};

/* Every case; all that differ are printed before the test fails. */
void fixture_run(enum verify_language language, const struct fixture_case *cases, size_t count);

/* Walks a text of any bytes; the lines live until the next call. */
const char *fixture_walk(enum verify_language language, const char *text, size_t size);

/* The same within the time that a judgement has. */
const char *fixture_walk_for(enum verify_language language, const char *text, size_t size, unsigned time_ms);
