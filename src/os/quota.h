/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Project quotas: limits of a number that inodes carry and directories pass on, on ext4 and XFS mounted with `prjquota`
 * (quotactl(2), FS_IOC_FSSETXATTR). quotactl_fd(2), Linux 5.14: any open file or directory names its file system. The
 * initial user namespace's root alone can set limits, and nobody in another user namespace can change a project.
 */

#include <stdint.h>

#include "base/cleanup.h"

/* 0 is none. */
struct quota_limit {
	uint64_t bytes, inodes;
};

struct quota_state {
	struct quota_limit limit, used;
};

/* Whether limits of projects hold on this file system: 1, 0. */
int quota_is_enforced(int fd) MUST_USE;

/* What the file system knows of a project; all zero where that is nothing. */
int quota_read(int fd, uint32_t project, struct quota_state *ret_state) MUST_USE;

/* Hard limits, from now on; of bytes down to a whole KiB. CAP_SYS_ADMIN. */
int quota_limit(int fd, uint32_t project, const struct quota_limit *limit) MUST_USE;

/* The first project from this number on that the file system knows of. -ENOENT: none. CAP_SYS_ADMIN. */
int quota_next(int fd, uint32_t from, uint32_t *ret_project, struct quota_state *ret_state) MUST_USE;

/* The project of an open directory, 0 where it has none, or passes none on. */
int quota_project_of(int fd, uint32_t *ret_project) MUST_USE;

/* The directory gets this project, and so does what is made in it. */
int quota_assign(int fd, uint32_t project) MUST_USE;
