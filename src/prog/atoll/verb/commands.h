/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The commands of a running sandbox, row by row, for the verbs of `atoll` that list them or look for one. It shows and
 * decides nothing.
 */

#include "base/cleanup.h"
#include "base/err.h"
#include "prog/atoll/verb/library.h"

/*
 * Calls visit with each (ATOLL_COMMAND_INFO), in the order of their numbers: those that run, and those that ended in
 * the last 30 s. A negative value of visit ends it and is returned. Negative with *err.
 */
int commands_visit(atoll_sandbox *sandbox, int (*visit)(void *context, atoll_record *row), void *context,
		   struct err *err) MUST_USE;
