/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where copied-up files came from. A staged file that was copied up and that the host lacks was either deleted on the
 * host (a conflict) or renamed or linked inside the sandbox (a plain addition). overlayfs keeps the file handle of
 * what it copied (user.overlay.origin), so the two can be told apart: in the second case a file with that handle
 * is still there under a name that the sandbox touched. Made only when the question comes up. Within stage/ only.
 */

#include <stdbool.h>

#include "base/cleanup.h"
#include "stage/layer.h"

struct origins;

/* Collects the handles of what the stack's layers hold and of what the host has at those paths. -errno. */
int origins_load(struct origins **ret_origins, const struct stage_stack *stack) MUST_USE;
void origins_free(struct origins *origins);

/*
 * Whether what the file (dir_fd, name) was copied from is on the host, or was made in the sandbox. false also where
 * the file system has no handles.
 */
bool origins_is_known(const struct origins *origins, int dir_fd, const char *name);
