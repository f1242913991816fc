/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Removes trees that hostile code made: as deep as it likes, with directories that nobody may enter. Uses a constant
 * number of fds, a recursion of a few levels and no allocation, follows no link and leaves no file system.
 */

#include <stdint.h>

#include "base/cleanup.h"

/*
 * Removes (dir_fd, name) and all below it; missing is success. What is being removed lies in (dir_fd, NAME.gone) until
 * it is gone, so that a crash leaves no half of it under its own name; the next call with that name takes the rest.
 * *ret_bytes (may be NULL) grows by the space that was in use. -EXDEV at a mount, -errno.
 */
int stage_remove_tree(int dir_fd, const char *name, uint64_t *ret_bytes) MUST_USE;

/* Only what lies in NAME.gone already: a new thing may have taken the name meanwhile. */
int stage_remove_rest(int dir_fd, const char *name, uint64_t *ret_bytes) MUST_USE;
