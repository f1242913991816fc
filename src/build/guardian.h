/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A second, sleeping process outside the sandbox that tidies up when the box is killed (SIGKILL cannot be
 * caught): the sandbox dies by itself then (PR_SET_PDEATHSIG, and its PID 1 sees the wire close), but
 * cgroups, the control socket and the session's record would stay. It wakes up at the end of the box's life
 * only, and also removes then what the run staged and nobody keeps. While it sleeps it borrows the box's memory
 * (clone(2), CLONE_VM), which costs a start a quarter of what a fork does; before it tidies up behind a box that was
 * killed it executes atoll anew, since that may have left its memory in any state.
 */

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/cleanup.h"

struct guardian {
	int pipe_fd; /* write end: closed without a word means that the box was killed */
	pid_t pid;
};

struct guardian_task {
	const char *session;
	const char *group;          /* as what its control groups are named */
	const char *state_dir;      /* sessions/ID is below it, and `notice`: what the next run shall say */
	const char *runtime_dir;    /* ID.sock is below it */
};

/* argv[0] of an atoll that is a guardian at work; session, group, state and runtime directory and the reason follow. */
extern const char guardian_name[];

/*
 * Starts the guardian, one a process. It holds no fd of the box but the pipe's read end and ignores every signal that
 * can be.
 */
int guardian_start(struct guardian *ret_guardian, const struct guardian_task *task, struct err *err) MUST_USE;

/* Its box is that of this session from now on; the groups keep their name. -ENOMEM: it minds the one before. */
int guardian_follow(const char *session) MUST_USE;

/*
 * Tells it that all is tidy: it looks for what other boxes left, and exits. The last act of a box. trash: NULL, or a
 * name, which stays where it is, for stage_remove_rest(): removed when this process has exited. A dozen directories
 * take half a millisecond, for which nobody should wait.
 */
void guardian_dismiss(struct guardian *guardian, const char *trash);

/*
 * Instead of guardian_dismiss(): cgroups of the sandbox stand there still (something held them for longer than a box
 * waits for), and the guardian removes them, with more patience, as it does for a box that was killed.
 */
void guardian_leave_to(struct guardian *guardian);

/* What it does when it was executed. The exit status. */
int guardian_work(int argc, char **argv) MUST_USE;
