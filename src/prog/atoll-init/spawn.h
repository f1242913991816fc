/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Starting one command: the child's side of clone and exec, and the search in PATH. Used by atoll-init for
 * commands on pipes, and by a terminal's monitor for the command on the terminal. It reports nothing by itself.
 */

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/init.h"

struct spawn_plan {
	const struct init_spawn *spawn;   /* borrowed */
	char **shell_argv;                /* room for {"/bin/sh", program, argv[1]…, NULL} */
	int fds[3];                       /* all above 2: become 0, 1, 2 */
	int terminal;                     /* the slave of which the command gets the foreground; FD_NONE: none */
	/* written by the child */
	int errnum;                       /* 0: the program runs */
	enum init_failure failure;        /* which step errnum is of */
	char program[PATH_MAX];
};

/*
 * Runs the plan in a new child. Returns after its exec (CLONE_VFORK): the child's pid, which the caller reaps;
 * or -errno with plan->failure set, the child gone and reaped. Every signal must be blocked in the
 * caller and every disposition be the default, because the child starts from them.
 */
pid_t spawn_command(struct spawn_plan *plan) MUST_USE;
