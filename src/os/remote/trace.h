/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Holding another process at its next exec, before the new program runs an instruction: ptrace(2) for this alone. The
 * tracee dies with the tracer. Needs what ptrace(2) asks for to attach; one tracer at a time, so a process that
 * something else traces cannot be held.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/cleanup.h"

enum trace_state {
	TRACE_RUNS,
	TRACE_AT_EXEC,               /* stopped; the new image is there and has not run */
	TRACE_STOPPED,               /* stopped for another reason: trace_release() lets it go on with that */
	TRACE_GONE,                  /* it ended, or is no tracee of ours */
};

/*
 * PTRACE_SEIZE: the thread goes on running, or waiting. Can wait for an exec that another thread of the process is in
 * the middle of. -EPERM: it is traced by something else.
 */
int trace_seize(pid_t tid) MUST_USE;

/* Lets it stop as soon as it is on its way back to its program, if nothing stops it before. -ESRCH: it is gone. */
int trace_interrupt(pid_t tid) MUST_USE;

/*
 * What became of it, without waiting. *ret_signal: of TRACE_STOPPED, for trace_release(). A thread that is not the
 * first one of its process takes that one's number when it executes a program, so both may have to be asked about.
 */
enum trace_state trace_look(pid_t tid, int *ret_signal);

/*
 * Of a stopped one: no tracee any more, and it goes on (signal: with that one, 0: none). False: it was killed in its
 * stop, and is a tracee until trace_look() has seen its end.
 */
bool trace_release(pid_t tid, int signal_number) MUST_USE;
