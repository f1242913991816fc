/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A second, sleeping process outside the sandbox that tidies up when the box is killed (SIGKILL cannot be
 * caught): the sandbox dies by itself then (PR_SET_PDEATHSIG, and its PID 1 sees the wire close), but
 * cgroups, the control socket and the session's record would stay. It wakes up at the end of the box's life
 * only.
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
	/* All borrowed until guardian_start() returns; the guardian has its own copy by fork. */
	const char *session;
	const char *state_dir;      /* sessions/ID is below it, and `notice`: what the next run shall say */
	const char *runtime_dir;    /* ID.sock is below it */
};

/* Forks the guardian. It holds no fd of the box but the pipe's read end and ignores every signal that can be.
 */
int guardian_start(struct guardian *ret_guardian, const struct guardian_task *task, struct err *err) MUST_USE;

/* Tells it that all is tidy: it exits. */
void guardian_dismiss(struct guardian *guardian);
