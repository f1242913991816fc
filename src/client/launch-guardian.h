/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The way into a box's guardian (build/guardian.h), which the box starts as another `atoll`. What a guardian does is
 * not here. Run by atoll.
 */

#include <stdbool.h>

/*
 * Whether this process is the guardian of a box, by its argv[0]: then *ret_status is what it ends with, and its work is
 * done.
 */
bool launch_guardian(int argc, char **argv, int *ret_status);
