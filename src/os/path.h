/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Paths resolved once: openat2(2) and /proc/self/fd. Above this file a path is (dirfd, relative),
 * so that nobody can swap a component between the check and the use.
 */

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

/* openat2(2) with O_CLOEXEC added; resolve is a RESOLVE_* mask. The fd, or -errno. */
int path_open2(int dir_fd, const char *path, uint64_t flags, mode_t mode, uint64_t resolve) MUST_USE;

/* O_PATH fd of an absolute path, following links; never a magic link (RESOLVE_NO_MAGICLINKS). */
int path_open_anchor(const char *path) MUST_USE;

/* The entries of the directory fd, which is taken; NULL with errno, which is -fd where fd is no descriptor but why. */
DIR *path_list(int fd) MUST_USE;

/* The path that the kernel gives for fd, in out[size]. -ENOENT if it was deleted or is not reachable. */
int path_of_fd(int fd, char *out, size_t size) MUST_USE;

/* The real absolute path of path (links resolved). -ENOENT and so on as open(2). */
int path_real(const char *path, char *out, size_t size) MUST_USE;

/*
 * When the file (dir_fd, name; a link is not followed) was made: statx(2), STATX_BTIME, CLOCK_REALTIME. -ENODATA where
 * the file system does not keep it.
 */
int path_birth_ns(int dir_fd, const char *name, uint64_t *ret_ns) MUST_USE;

/* Whether there is something of this name, to be seen by this program; a link that leads nowhere is nothing. */
bool path_is_there(const char *path);

/* chmod(2) of what path_fd (O_PATH will do, but of no link) is open on, whatever its names are by now. -errno. */
int path_chmod(int path_fd, mode_t mode) MUST_USE;

/* mkdir -p below dir_fd (AT_FDCWD for absolute paths), each new directory with this mode. 0 if it exists. */
int path_make_directories(int dir_fd, const char *path, mode_t mode) MUST_USE;

/* Removes path and all below it, never following a link, never crossing a mount. Missing is success. */
int path_remove_tree(int dir_fd, const char *path) MUST_USE;

/*
 * mkdir(2) of a directory that shall lie far from what is beside it: on ext4 in an empty block group of the disk
 * (chattr(1), attribute T, set on the parent meanwhile). Where that is not known it is an ordinary one. ext4 begins to
 * look at a group that it takes from the name, so it is made under a name by chance and renamed.
 */
int path_make_apart(const char *parent, const char *name, mode_t mode) MUST_USE;

/* rename(2) to a name that nobody has: -EEXIST where somebody does. Both are absolute. */
int path_rename_new(const char *from, const char *to) MUST_USE;
