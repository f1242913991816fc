/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Tables of names: enum <-> text in one direction-free array, and the nearest valid name for an
 * error message. Pure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* names[value] is the text of value; NULL entries are skipped. */

/* The value whose name is text, or -1. */
int names_find(const char *const *names, size_t count, const char *text);

/* The name of value, or "?" when it is out of range. */
const char *names_get(const char *const *names, size_t count, size_t value);

/* The name with the smallest edit distance to text if that is at most 1/3 of its length + 1, else NULL. */
const char *names_nearest(const char *const *names, size_t count, const char *text);
