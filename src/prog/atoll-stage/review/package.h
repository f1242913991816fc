/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a package.json has others run: scripts, programs, hooks of git and of tools. Where a change of one leaves that
 * alone (a dependency more, another version), nobody has to be asked about it. Parses what the sandbox wrote, so it is
 * for a confined program alone; bounded in bytes and depth.
 */

#include <stdbool.h>
#include <stddef.h>

#include "stage/change/change.h"

enum { PACKAGE_BYTES_MAX = 1 << 20 };

/* Once, before the program is confined: the parser's hash tables take a random number. */
void package_prepare(void);

/*
 * Whether both texts (NULL: there is none) have the same run. False also where one cannot be read as a JSON object
 * without repeated names: others may read it in another way.
 */
bool package_text_is_same(const char *staged, size_t staged_size, const char *host, size_t host_size);

/* The same of a change. False where either side cannot be read, or is no file. */
bool package_is_same(const struct stage_stack *stack, const struct stage_change *change);
