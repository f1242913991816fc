/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A process named by pidfd, so that a reused number is never signalled. pidfd_open(2).
 * Everything above os/ that signals or waits does it through this.
 */

#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>

#include "base/cleanup.h"

struct pidref {
	pid_t pid;   /* for messages and /proc only */
	int fd;      /* owned; readable when the process has ended */
};

#define PIDREF_NONE ((struct pidref){ .pid = 0, .fd = FD_NONE })

/* Takes a reference to a live child or peer. -ESRCH if it is gone. */
int pidref_open(struct pidref *ret_ref, pid_t pid) MUST_USE;
void pidref_done(struct pidref *ref);
#define cleanup_pidref __attribute__((cleanup(pidref_done)))

/* pidfd_send_signal(2). -ESRCH once the process has been reaped. */
int pidref_signal(const struct pidref *ref, int signal_number) MUST_USE;

/* waitid(P_PIDFD): options as waitid(2). 1 when *ret_info was filled, 0 with WNOHANG and nothing, -errno. */
int pidref_wait(const struct pidref *ref, int options, siginfo_t *ret_info, struct rusage *ret_usage) MUST_USE;
