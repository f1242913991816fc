/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whole trees: listed in pages, and removed in steps, so that others get their turn.
 * Part of atoll-files, which runs it inside; it follows no link.
 */

#include "inside.h"

/* An operation, behind the judgement of its paths: 0, or a positive errno; what is told of it goes into inside->out. */
int tree_readdir(struct inside *inside, const char *path, const char *to);
int tree_remove(struct inside *inside, const char *path, const char *to);
