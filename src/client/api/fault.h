/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Errors of libatoll: from atoll's own error value to the caller's, and to the code that a function returns. Part of
 * libatoll.
 */

#include "atoll.h"
#include "base/err.h"

/* Fills *error (NULL: nothing) and returns the code. */
int fault_from_err(struct atoll_error *error, const struct err *err);

/* Another code for what *error says. Returns it. */
int fault_code(struct atoll_error *error, int code);

/* The same for a message of the library's own; errnum 0: none. Formats are those of err_set(). */
int fault_set(struct atoll_error *error, int code, int errnum, const char *where, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
void fault_hint(struct atoll_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Out of memory, and what else a negative errno says. */
int fault_errno(struct atoll_error *error, int r, const char *where);
