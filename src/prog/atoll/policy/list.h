/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * `atoll policy list`: the policies that a name stands for, with the first sentence of each one's own comment. It
 * compiles none and says nothing of whether they are valid.
 */

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"

/* Shipped ones by kind, then the user's own (CONFIG/atoll/policies). words: behind "list", none. Negative with *err. */
int policy_list(char **words, bool json, struct err *err) MUST_USE;
