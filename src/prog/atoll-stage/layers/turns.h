/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What bounds checkpoints (turn-N), which an agent asks for: each copies what was written since the start, and together
 * they take no more than a share of the disk. The oldest go first; what a person named stays. Used by snapshot.
 */

#include "base/err.h"
#include "stage/snapshot/lock.h"

/* Whether what was written may be copied once more. -EFBIG, -ENOSPC with *err. Before the sandbox is frozen. */
int turns_check(const struct stage_lock *lock, struct err *err) MUST_USE;

/* Removes the oldest checkpoints beyond the bounds, and their layers. */
int turns_thin(const struct stage_lock *lock, struct err *err) MUST_USE;
