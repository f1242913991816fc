/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * System calls made by another process, which is stopped for that and does not notice: ptrace(2). For what the kernel
 * lets nobody else do, like changing its working directory. Once it has stopped, it dies with the tracer. Needs what
 * ptrace(2) asks for to attach; x86_64 and aarch64.
 */

#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

/* PTRACE_SEIZE and PTRACE_INTERRUPT: it stops on its way back to its program. -EPERM: something else traces it. */
int trace_call_seize(pid_t tid) MUST_USE;

/* Waits for that stop. -ETIMEDOUT; -ESRCH: it is gone. */
int trace_call_wait(pid_t tid, unsigned patience_ms) MUST_USE;

/* No tracee any more; what it was doing it does again. One that never stopped stays a tracee until we end. */
void trace_call_release(pid_t tid);

/* A stopped tracee between trace_call_begin() and trace_call_end(), which put back what it was. */
struct trace_caller;

/* *ret_caller is owned, until trace_call_end(). -ENOSYS: its memory has no instruction that makes a call. */
int trace_call_begin(pid_t tid, struct trace_caller **ret_caller) MUST_USE;
void trace_call_end(struct trace_caller *caller);

enum { TRACE_CALL_ARGUMENTS = 6, TRACE_CALL_TEXT_MAX = 4096 };

/* Makes the call. Its result, negative: -errno, also of ptrace. */
int64_t trace_call(struct trace_caller *caller, long number, const uint64_t arguments[TRACE_CALL_ARGUMENTS]) MUST_USE;

/* Puts a string into a page of its own in the tracee's memory, which goes with trace_call_end(); its address. */
int trace_call_put(struct trace_caller *caller, const char *text, uint64_t *ret_address) MUST_USE;
