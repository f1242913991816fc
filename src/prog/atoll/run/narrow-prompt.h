/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A proposal of the verifier as people see it: in a few lines on stderr, or as a question on the terminal. Nothing of
 * it reaches the terminal unescaped. Used by `atoll run --narrow`.
 */

#include "client/narrow.h"

/* The terminal that the process is in the foreground of, and stderr. */
extern const struct narrow_prompt narrow_prompt;
