/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How much space a session takes, whatever a sandbox has put into it: bounded as every walk of what is hostile. Used by
 * gc.
 */

#include <stdint.h>

#include "base/cleanup.h"

/*
 * Adds the space of (dir_fd, name) and all below it to *bytes. As deep as STAGE_WALK_DEPTH_MAX and as many entries as
 * a walk takes; what is beyond, and what cannot be read, is not counted.
 */
int size_of_tree(int dir_fd, const char *name, uint64_t *bytes) MUST_USE;
