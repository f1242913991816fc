/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Labels of a sandbox: NAME=value for whoever keeps many of them, in its record. They mean nothing to atoll, which
 * checks their form and their size. Pure.
 */

#include <stdbool.h>

#include "base/cleanup.h"

enum { LABELS_MAX = 64, LABELS_SIZE_MAX = 4 << 10 };

/*
 * One text of them (owned by the caller), one a line; NULL is none, "". -EINVAL: a name is not 1 to 63 of
 * [A-Za-z0-9._/-], or comes twice, or a value has control characters; -E2BIG: too many or too long; -ENOMEM.
 */
int labels_join(const char *const *labels, char **ret_text) MUST_USE;

/* A copy of such a text (owned by the caller), whose labels are in the list; NULL: no memory, or no text. */
char *labels_split(const char *text, char *ret_list[LABELS_MAX + 1]);

/* Whether each of the labels is in a text of labels_join(). */
bool labels_have(const char *text, const char *const *labels);
