/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The file-descriptor mount API of Linux 5.2 to 5.12: mounts are made detached, get all their attributes while
 * nobody can see them, and are attached by fd, so no path is ever resolved twice. Async-signal-safe throughout.
 */

#include <linux/mount.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct mount_option {
	const char *name;
	const char *value;   /* NULL: a flag */
};

/* A detached mount of a new file system with MOUNT_ATTR_* attributes. The fd (usable as directory fd), or -errno. */
int mount_new(const char *type, const struct mount_option *options, size_t count, uint64_t attributes) MUST_USE;

/*
 * A detached copy of what (dir_fd, path) names, "" meaning dir_fd itself (an O_PATH fd will do); recursive takes the
 * mounts below along. dir_fd must belong to the caller's mount namespace. The fd, or -errno.
 */
int mount_clone(int dir_fd, const char *path, bool recursive) MUST_USE;

/*
 * Sets attributes on the mount at fd, and below it if recursive; and cuts it off from the host's propagation, so
 * that neither a later mount of the host appears in it nor one of ours on the host. userns_fd >= 0 with
 * MOUNT_ATTR_IDMAP. mount_setattr(2): -EINVAL also where a file system cannot be idmapped, -ENOSYS before 5.12.
 */
int mount_seal(int fd, bool recursive, uint64_t attributes, int userns_fd) MUST_USE;

/* What becomes of a mount: MOUNT_ATTR_* bits to set and to clear, MS_SHARED and so on of <sys/mount.h> or 0. */
struct mount_change {
	uint64_t set, clear, propagation;
	int userns_fd; /* borrowed, with MOUNT_ATTR_IDMAP in set */
};

/* Does nothing but what change says, to the mount at fd, or to it and all below. mount_setattr(2). */
int mount_change(int fd, bool recursive, const struct mount_change *change) MUST_USE;

/* Lets a mount be written that is read-only by its attribute and by nothing else. mount_setattr(2). */
int mount_allow_writes(int fd) MUST_USE;

/* Cuts all mounts of the calling process off from those that they were copied from (MS_PRIVATE, recursively). */
int mount_make_private(void) MUST_USE;

/*
 * Takes away the mount whose root fd is; what is open on it stays open (MNT_DETACH). proc_fd: a /proc in which the
 * caller finds itself; becomes the working directory.
 */
int mount_detach(int fd, int proc_fd) MUST_USE;

/* Attaches a detached mount on top of what target_fd names (a file on a file, a directory on a directory). */
int mount_attach(int mount_fd, int target_fd) MUST_USE;

/*
 * The same on top of one name in a directory, which is looked up without following a link: for directories in which
 * nobody else makes names.
 */
int mount_attach_at(int mount_fd, int dir_fd, const char *name) MUST_USE;

/*
 * Whether name in dir_fd, or with "" dir_fd itself, is the root of a mount (STATX_ATTR_MOUNT_ROOT, Linux 5.8); false
 * where the kernel does not say, and where there is nothing. A link is not followed.
 */
bool mount_is_root(int dir_fd, const char *name);

/* The mount that fd lies on, as /proc/PID/mountinfo numbers it (STATX_MNT_ID, Linux 5.8). -ENODATA before. */
int mount_id(int fd, uint64_t *ret_id) MUST_USE;

/*
 * Makes root_fd (the root of a mount) the root directory and the working directory, of all processes that had the old
 * one. The old root then lies over the new one, where no path leads to it; mount_detach_old_root(), by any process of
 * the mount namespace, takes it away and returns when nobody in the kernel uses it any more.
 */
int mount_pivot(int root_fd) MUST_USE;
int mount_detach_old_root(void) MUST_USE;
