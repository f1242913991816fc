/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who follows the questions of all sandboxes, also of those that are not there yet: `atoll ask` shares a lock in the
 * run-time directory while it does. A sandbox that has just begun waits for such a person to come instead of taking
 * the first question for one that nobody hears. Run by atoll and atoll-box.
 */

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"

/* *ret_fd (owned): one is a listener until it is closed. Makes the run-time directory where there is none. */
int listeners_join(int *ret_fd, struct err *err) MUST_USE;

/* Whether there is any, as far as that can be known. */
bool listeners_are_there(void);
