/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A session's log for verbs beside `atoll log` (cmd-log.c): shown by atoll-log, which becomes this process. Nothing of
 * the log is read here.
 */

#include <stdbool.h>

#include "base/err.h"

/* All records of one type; session NULL: the newest of this project. Returns only where that fails: negative, *err. */
int log_show_type(const char *session, const char *type, bool json, struct err *err) MUST_USE;
