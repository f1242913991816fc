/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A jail on its way: what the steps beside it (jail/spec.h) need. Shared by start.c, which has their order, and
 * start-mounts.c.
 */

#include <limits.h>

#include "box/state/sandbox.h"
#include "build/mount-plan.h"
#include "jail/spec.h"

enum { LIMITS_TEXT_MAX = 64 << 10 };

struct plan_texts {
	char denials_path[PATH_MAX], client_path[PATH_MAX], root[PATH_MAX]; /* root: "": the host's */
	char limits_memory[LIMITS_TEXT_MAX];
};

struct building {
	struct box *box;
	struct jail_spec spec;
	struct plan *plan;       /* owned; NULL: not made yet */
	struct plan_texts *texts; /* what the plan borrows */
	bool by_fuse;            /* fuse-overlayfs makes the staged trees */
};

/*
 * Fills texts->root with the system of its own that the sandbox has: that which was asked for, or that of the session
 * that it goes on from. Negative with *err.
 */
int building_find_root(struct building *building, struct err *err) MUST_USE;

/* Calls of struct jail_calls, with a struct building: the mounts of the policy, and those that it takes away. */
int build_mounts(void *context, const struct jail_mount **ret_mounts, size_t *ret_count, struct err *err) MUST_USE;
int build_masks(void *context, const struct jail_mount **ret_masks, size_t *ret_count, struct err *err) MUST_USE;
