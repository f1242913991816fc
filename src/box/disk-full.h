/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What follows when the disk limit of staged changes is reached: nothing inside may grow until there is room again, and
 * where that does not help the run ends. disk.h counts and decides; this does it. Runs in atoll-box.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

struct box;
struct watch_file;

/* Looks, where it is time to. 0, also where the run was ended; negative: the log failed, or nothing can be counted. */
int disk_supervise(struct box *box, uint64_t now_ns) MUST_USE;

/* Whether a mediated call would make something in a staged tree that is full: it is refused with ENOSPC. */
bool disk_refuses(const struct box *box, const struct watch_file *event);
