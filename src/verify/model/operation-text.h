/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Operations as lines of text: what tests compare and what shows a rule's author what a rule can see.
 * Only in atoll-verify and tests; pure.
 */

#include "base/buf.h"
#include "verify/model/operation.h"

/*
 * One line each: "3 remove '/etc' ~'x?' +recursive +force @pipe <1 <2": number, kind, words (unknown parts as ?, words
 * that are not exact with a ~ before the quote), traits, context, numbers of the operations that flow in.
 */
void operations_put(const struct operations *operations, struct buf *out);

/* The names of the bits of context and traits, from the lowest on; static. */
const char *const *operation_context_names(size_t *ret_count);
const char *const *operation_trait_names(size_t *ret_count);
