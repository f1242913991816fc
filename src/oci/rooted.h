/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Files and directories below a root that somebody hostile has filled: every name is looked up by openat2(2) with
 * RESOLVE_IN_ROOT, so a link or ".." leads to something below the root, as it would behind a chroot(2). What is
 * missing is made by descriptor of its directory. Used by atoll-oci, which mounts into root directories of images.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/cleanup.h"

/* flags as open(2) (O_PATH and so on); path with or without a slash before it. The fd, or -errno. */
int rooted_open(int root_fd, const char *path, int flags) MUST_USE;

/*
 * An O_PATH fd of what path names; it and the directories that lead to it are made where they are missing: an empty
 * file of mode 0644 where is_directory is false, directories of 0755. What is there is taken as it is, of whatever
 * kind. -ELOOP, -ENOTDIR; -ENOENT also where the way goes by a link that leads nowhere.
 */
int rooted_make(int root_fd, const char *path, bool is_directory) MUST_USE;

/* An O_PATH fd of the directory that path lies in, made as above; *ret_name: the last component, in path. */
int rooted_make_parent(int root_fd, const char *path, const char **ret_name) MUST_USE;

/* mknod(2) of path with exactly this mode and owner, in directories made as above. -EEXIST where something is there. */
int rooted_make_node(int root_fd, const char *path, mode_t mode, dev_t device, uid_t uid, gid_t gid) MUST_USE;

/* symlink(2), likewise; success where something of that name is there already. */
int rooted_make_link(int root_fd, const char *path, const char *target) MUST_USE;
