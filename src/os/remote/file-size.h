/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The size up to which the processes of a PID namespace may let files grow, set from outside while they run:
 * RLIMIT_FSIZE by prlimit(2). What would write beyond it fails with EFBIG, where the process ignores SIGXFSZ. Only soft
 * limits are touched, since nobody without privilege could raise a hard one again: a program can raise its own, so this
 * holds up the honest and slows down nobody else. Needs the right to the namespace's owner (the same user, or root).
 */

#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

/*
 * No process below init_pid, itself included, lets a file grow beyond size bytes any more; who has a lower limit keeps
 * it. Repeats until all children that were made meanwhile have it too. -ESRCH: init_pid is gone; -EAGAIN: they
 * are made faster than they are found; or why one could not be limited.
 */
int file_size_lower(pid_t init_pid, uint64_t size) MUST_USE;

/*
 * Who has exactly this soft limit gets the one of before (UINT64_MAX: none), as far as its hard limit goes. As
 * file_size_lower().
 */
int file_size_restore(pid_t init_pid, uint64_t size, uint64_t before) MUST_USE;
