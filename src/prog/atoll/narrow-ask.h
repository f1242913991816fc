/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A proposal of the verifier as people see it: in a few lines on stderr, or as a question on the terminal. Nothing of
 * it reaches the terminal unescaped. Used by `atoll run --narrow`.
 */

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"

struct narrow_shown {
	const char *task, *reason;   /* the reason may be "" */
	const char *text;            /* of the proposal */
	const char *brief, *whole;   /* what it takes away, in lines */
};

enum narrow_answer { NARROW_NO, NARROW_YES, NARROW_QUIT };

/* Whether there is a terminal, in whose foreground we are. */
bool narrow_can_ask(void);

/* What is taken away, on stderr. */
void narrow_show(const struct narrow_shown *shown);

/* Asks until there is an answer. NARROW_QUIT also where the terminal goes away. Negative with *err: there is none. */
int narrow_ask(const struct narrow_shown *shown, enum narrow_answer *ret_answer, struct err *err) MUST_USE;
