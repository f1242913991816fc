/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which advice a user was given already, so that it is not given at every run: a line for each in STATE/said. Used by
 * atoll.
 */

#include <stdbool.h>

#define SAID_FILE "said"

enum { SAID_NAME_MAX = 100 };

/*
 * Whether this advice is new, which it is not any more afterwards. name: at most SAID_NAME_MAX letters, digits, '.',
 * '_' and '-'; another is never new. False as well where it cannot be kept (16 KiB in all), so that it is never said
 * at every run.
 */
bool said_first_time(const char *state_dir, const char *name);
