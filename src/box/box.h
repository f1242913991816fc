/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The life of one sandbox, from a run request to its report. Run by atoll-box alone, which is one
 * process per sandbox, has no threads, parses no text and is the only writer of the action log.
 */

#include "base/err.h"
#include "session/run-request.h"
#include "supervise/run.h"

/*
 * Builds the sandbox, runs the request's command (with REQUEST_DETACH: serves the control socket until it
 * is stopped; announce_fd, which it takes, gets the session's id once the sandbox lives), tears everything
 * down and writes the report. *ret_status is the exit status for the caller, *ret_next which
 * verb of atoll is to follow (REQUEST_APPLY, REQUEST_REVIEW), or NULL. Negative with *err when the
 * sandbox could not be built or was lost. Either way nothing is left outside this process then; what it still holds
 * is its own, until box_release() or its end. Once in a process.
 */
int box_run(const struct run_request *request, const struct run_policy *policy, int announce_fd,
	    int *ret_status, const char **ret_next, struct err *err) MUST_USE;

/*
 * Gives back what the process holds after box_run(): memory, and descriptors. Only where it goes on: its end takes all
 * of it at once, sooner than one by one.
 */
void box_release(void);
