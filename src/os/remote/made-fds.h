/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Descriptors that only a process within some namespace can make, made by a child that enters it, sends them and ends:
 * the caller stays where it is. What it enters and makes is the caller's. For netns.c and userns.c.
 */

#include <stddef.h>

#include "base/cleanup.h"
#include "os/fd.h"

/*
 * Has make() run in a child with memory of its own, not one of vfork(2): entering a user namespace changes credentials,
 * and with them whether the memory can be read by processes of the same user (dumpable), which would be ours as well.
 * make() returns an errno, or 0 with up to FD_PASS_MAX descriptors. How many there are in fds (owned), or -errno.
 */
int made_fds(int (*make)(const void *context, int *fds, size_t *ret_count), const void *context,
	     int fds[FD_PASS_MAX]) MUST_USE;
