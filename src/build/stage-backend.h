/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who makes the staged trees of a run: the kernel's overlay, or fuse-overlayfs(1). Looks at the host, and changes
 * nothing. Runs in atoll-box.
 */

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "policy/policy.h"
#include "session/run-request.h"

/* Why fuse-overlayfs makes the trees. */
enum backend_reason {
	BACKEND_OVERLAY,           /* it does not */
	BACKEND_FUSE,              /* the policy says so, or lets it stand for an overlay that cannot be had here */
	BACKEND_FUSE_FOR_OTHERS,   /* the policy lets it, and there are files of other users or groups */
	BACKEND_OVERLAY_NO_FUSE,   /* there are such files, and no fuse-overlayfs: changing them will fail */
};

/* Whether fuse-overlayfs makes the trees for this reason; else the kernel does. */
bool backend_is_fuse(enum backend_reason reason);

enum { BACKEND_LOOKS = 256 };

/*
 * Fails, with the ways out, where the policy demands an overlay that cannot be had. Before anything is made.
 *
 * As a user the kernel maps one uid and one gid, and an overlay copies up nothing that has another (EOVERFLOW,
 * fs/overlayfs/copy_up.c): so files that the user may write to because of another group, or because others gave them
 * free, could be neither changed nor removed. Whether there are some is told by a look at the tree and what lies right
 * in it and in its .git, of at most BACKEND_LOOKS names; what lies deeper is not found.
 */
int backend_choose(const struct run_request *request, const struct policy *policy, enum backend_reason *ret_reason,
		   struct err *err) MUST_USE;
