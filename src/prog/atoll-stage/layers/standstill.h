/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Holds a living session still for a snapshot or a restore: what is said with its box on descriptor 3
 * (wire/control.h). All goes on when the connection ends, so also when we are killed.
 */

#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

/* Freezes everything inside. name: the snapshot that it is for. Waits until all stand still, or -errno with *err. */
int standstill_begin(const char *name, struct err *err) MUST_USE;

/*
 * A staged tree as programs inside see it. The fd (O_PATH, owned by the caller), or -errno with *err: also where they
 * do not stand still any more.
 */
int standstill_tree(size_t number, struct err *err) MUST_USE;

/* Lets all go on. 0: they stood still until now; 1: they did not; -errno with *err. */
int standstill_end(struct err *err) MUST_USE;
