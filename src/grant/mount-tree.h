/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Inside grant/ only: the tree that runtime-mount.c brings in, made in the child of build/enter-namespaces.h before it
 * enters the sandbox. It knows what must be covered, and attaches nothing where anybody could see it.
 */

#include <stdbool.h>

#include "base/cleanup.h"
#include "policy/policy.h"

/* What a failure was about, for the message; beyond errno. */
enum mount_step {
	MOUNT_FINE,
	MOUNT_GONE,           /* the path leads to another object than the one that was shown, or to none */
	MOUNT_LINK,           /* a link stands on the way by now */
	MOUNT_KIND,           /* neither a file nor a directory, or of a file system of the kernel's own */
	MOUNT_BELOW,          /* such a file system is mounted below it */
	MOUNT_MASK,           /* a name below is masked that nothing can be put over */
	MOUNT_TREE,           /* it cannot be copied or restricted */
	MOUNT_PLACE,          /* something else is in its place inside, or it cannot be made there */
	MOUNT_STEP_COUNT,
};

struct mount_tree_wish {
	const struct policy *policy;
	const char *path;    /* absolute, normalised, real */
	int shown_fd;        /* the object that was shown (O_PATH); FD_NONE: any */
	int idmap_fd;        /* user namespace of its map; FD_NONE: none */
	bool is_writable, is_noexec;
};

/*
 * A detached mount of the wish, in a mount namespace of the caller's own. *ret_is_directory: what it is. The fd, or
 * -errno with *ret_step.
 */
int mount_tree_make(const struct mount_tree_wish *wish, bool *ret_is_directory, enum mount_step *ret_step) MUST_USE;
