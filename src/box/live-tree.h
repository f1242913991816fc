/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Inside box/ only: the tree that live.c brings in, made in the child of build/enter-namespaces.h before it
 * enters the sandbox. It knows what must be covered, and attaches nothing where anybody could see it.
 */

#include <stdbool.h>

#include "base/cleanup.h"
#include "policy/policy.h"

/* What a failure was about, for the message; beyond errno. */
enum live_step {
	LIVE_FINE,
	LIVE_GONE,           /* the path leads to another object than the one that was shown, or to none */
	LIVE_LINK,           /* a link stands on the way by now */
	LIVE_KIND,           /* neither a file nor a directory, or of a file system of the kernel's own */
	LIVE_BELOW,          /* such a file system is mounted below it */
	LIVE_MASK,           /* a name below is masked that nothing can be put over */
	LIVE_TREE,           /* it cannot be copied or restricted */
	LIVE_PLACE,          /* something else is in its place inside, or it cannot be made there */
	LIVE_STEP_COUNT,
};

struct live_wish {
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
int live_tree_make(const struct live_wish *wish, bool *ret_is_directory, enum live_step *ret_step) MUST_USE;
