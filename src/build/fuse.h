/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * fuse-overlayfs(1), which makes staged trees where the kernel's overlay cannot be had (`stage: {backend: …}`): one
 * process for each tree, outside of the sandbox and confined, that ends with it. What it leaves in a layer is read by
 * stage/ (STAGE_FORM_FUSE). It is no part of atoll; nothing here understands what it serves.
 */

#include <stddef.h>

#include "jail/spec.h"
#include "os/pidref.h"
#include "stage/record/record.h"

struct fuse_servers {
	struct pidref processes[STAGE_TREES_MAX];
	size_t count;
};

/* One tree to serve. */
struct fuse_tree {
	const struct jail_mount *mount; /* JAIL_FUSE; its layers have been made */
	int device_fd;                  /* borrowed */
	bool is_mapped;                 /* as root: uid and gid inside stand for the owner of the tree */
	uid_t uid;                      /* of the sandbox, inside */
	gid_t gid;
};

/* Whether fuse-overlayfs(1) can be executed at one of the paths where we look for it; it is not started. */
bool fuse_is_installed(void);

/* Starts its server. What does not begin to serve is noticed inside, by whoever asks first. */
int fuse_serve(struct fuse_servers *servers, const struct fuse_tree *tree, struct err *err) MUST_USE;

/*
 * When nothing inside runs any more: waits until each server has written what it had and ended, and ends one that does
 * not. -EIO with *err where one failed while it served: then staged changes may be incomplete.
 */
int fuse_finish(struct fuse_servers *servers, struct err *err) MUST_USE;
