/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Starting another program beside this one: the one place that forks and executes for the programs of the user's
 * side. What a sandbox runs is started by atoll-init; helpers with ids of their own by supervise/peer-process.h.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

enum { SPAWN_FDS_MAX = 10, SPAWN_NULL = -1000 };

/* from (borrowed; SPAWN_NULL: /dev/null) becomes to. Rows are done in order: an earlier `to` is taken already. */
struct spawn_fd {
	int from, to;
};

struct spawn {
	const char *program;             /* a path; with searches_path also a name */
	const char *const *argv;         /* NULL-terminated, with argv[0] */
	const char *const *env;          /* NULL: ours */
	struct spawn_fd fds[SPAWN_FDS_MAX];
	size_t fd_count;
	bool searches_path;              /* as execvp(3) */
	bool keeps_priority;             /* of spawn_background(): it is not the lowest */
	bool unblocks_signals;           /* its signal mask is empty; else it is ours */
	uint64_t default_signals;        /* bits 1 << signal: what we ignore and it does not */
};

/* Starts it: *ret_pid is a child of ours. -errno, also where the program cannot be executed. */
int spawn_start(const struct spawn *spawn, pid_t *ret_pid) MUST_USE;

/*
 * Waits for a child: its exit status, or 128 + N where signal N ended it. *ret_signal (may be NULL): that signal, else
 * 0. -errno.
 */
int spawn_wait(pid_t pid, int *ret_signal) MUST_USE;

/*
 * Starts it in the background, as a child of nobody of ours: a session of its own, /dev/null for standard streams that
 * are not in fds, nothing else open, in the root directory, at the lowest priority of processor and disk; cpu_max_s:
 * seconds of processor time after which it is killed, 0: as many as it likes. -errno where not even that could be
 * tried; whether it was executed, nobody learns.
 */
int spawn_background(const struct spawn *spawn, unsigned cpu_max_s) MUST_USE;

/*
 * Starts it as a child of nobody of the caller's, of whose process it gets nothing: fds (to: 3, 4, … in order) and
 * /dev/null for 0 to 2, env, the root directory, umask 022, no signal blocked or ignored, a session of its own. The
 * caller sees no child, no signal and no change of anything, whatever threads it has. Back when the program was
 * executed: 0. -errno, and *ret_step says at what.
 */
int spawn_detached(const struct spawn *spawn, const char **ret_step) MUST_USE;
