/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A limit of the file system's own for what one session writes: its live upper and work directories get a project of
 * their own (os/quota.h), with a hard limit while the session runs. Then the limit is taken away, and what the session
 * left keeps a number that means nothing. Only where root started atoll, and the state directory's file system
 * has project quotas. Projects are numbers of STAGE_QUOTA_FIRST and on; nobody else must use that range.
 */

#include <stddef.h>
#include <stdint.h>

#include "os/quota.h"

enum { STAGE_QUOTA_FIRST = 0x70000000, STAGE_QUOTA_COUNT = 0x0f000000 };

/* How the file system is asked: the kernel, or what a test has in its place. Each as in os/quota.h. */
struct stage_quota_calls {
	int (*is_enforced)(int fd);
	int (*read)(int fd, uint32_t project, struct quota_state *ret_state);
	int (*limit)(int fd, uint32_t project, const struct quota_limit *limit);
	int (*next)(int fd, uint32_t from, uint32_t *ret_project, struct quota_state *ret_state);
	int (*project_of)(int fd, uint32_t *ret_project);
	int (*assign)(int fd, uint32_t project);
	int (*pick)(uint32_t *ret_number); /* any number */
};

extern const struct stage_quota_calls stage_quota_kernel;

/*
 * Limits what is written into the live layers of this many trees, which are new and empty. 1: it holds, by
 * *ret_project; 0: this file system has no such limits; -errno: it has, but not for us: nothing is limited then.
 */
int stage_quota_begin(const struct stage_quota_calls *calls, int stage_fd, size_t tree_count,
		      const struct quota_limit *limit, uint32_t *ret_project) MUST_USE;

/* Takes the limit away: nothing runs any more. Nothing happens where there is none. 0 or -errno. */
int stage_quota_end(const struct stage_quota_calls *calls, int stage_fd) MUST_USE;

/* Takes the limits away that nothing is counted for any more: a power cut left them. 0 or -errno. */
int stage_quota_sweep(const struct stage_quota_calls *calls, int fd) MUST_USE;
