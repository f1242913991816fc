/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A directory of this machine, copied into a target. What it holds may be hostile: no link in it is followed, and
 * nothing of another file system is taken. Runs in atoll-template, confined.
 */

#include "base/err.h"
#include "image/target.h"

/*
 * Copies all that is below fd (O_RDONLY, borrowed), in the order of its names, without leaving its file system. What
 * cannot be read is an error. Negative with *err.
 */
int tree_copy(struct image_target *target, int fd, struct err *err) MUST_USE;
