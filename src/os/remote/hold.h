/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Holds all descendants of a process by ptrace(2), for a freeze without a freezer: no signal but SIGKILL ends such a
 * stop, where SIGCONT ends one by SIGSTOP. A child of the box does it, since who traces must wait for its tracees.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

/* Zeroed: nothing is held. */
struct hold {
	pid_t child;      /* ours, who traces; 0: nobody */
	int link_fd;      /* owned with child */
	bool has_begun;   /* it has tried every process once, or never will */
	bool is_complete; /* every thread that it can hold is held, and so is what they start */
	bool has_others;  /* some it cannot: something else traces them, or the machine lets nobody trace */
	bool has_woken;   /* after all stood still, one of the others has ended or could be held */
	uint32_t asked, answered; /* passes that were asked for, and that have been made */
};

/* Starts to hold the descendants of init. -errno: nothing is held. */
int hold_begin(struct hold *hold, pid_t init_pid) MUST_USE;

/* Notes what the child has said since, without waiting. */
void hold_look(struct hold *hold);

/* All stand still: from now on it looks for others ten times a second, and not at all where there are none. */
void hold_settle(struct hold *hold);

/* Tries everybody once more, for at most a second. False: of one of the others nobody knows whether it stood still. */
bool hold_check(struct hold *hold) MUST_USE;

/* Lets go of everybody, before it returns. Nothing where nothing is held. */
void hold_end(struct hold *hold);
