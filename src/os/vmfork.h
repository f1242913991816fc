/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Processes that run a function beside their maker, in the same memory where that can be had: cheaper than a fork by
 * far. For the short steps of a start, which end by exec or exit; they are as trusted as their maker.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

/* The stacks: one process at a time on each, that is, until it has executed another program or was reaped. */
enum vmfork_stack { VMFORK_PREPARER, VMFORK_FIRST, VMFORK_DETACHER, VMFORK_HOLDER, VMFORK_COUNT };

struct vmfork_work {
	int (*run)(void *argument);   /* its result is the exit status; on its stack errno is its own */
	void *argument;               /* must outlive the process */
};

/*
 * Whether such a process sees what its maker writes after it was started, and the maker what it writes. Neither may
 * rest on it; but what both write to is then a race.
 */
extern const bool vmfork_shares_memory;

/*
 * clone3(2) with CLONE_* flags beside CLONE_VM; cgroup_fd >= 0 starts it in that v2 cgroup. The pid, with *ret_pidfd
 * (owned), or -errno. It has copies of the descriptors, but with CLONE_FILES. It makes async-signal-safe calls only and
 * allocates nothing.
 */
pid_t vmfork_start(enum vmfork_stack place, uint64_t flags, int cgroup_fd, const struct vmfork_work *work,
		   int *ret_pidfd) MUST_USE;

/* Gives the memory of all stacks back to the system; none may be in use. */
void vmfork_rest(void);
