/* SPDX-License-Identifier: Apache-2.0 */
#include "os/remote/trace.h"

#include <signal.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/*
 * musl's waitid(3) is the system call; __WALL, since a thread that is traced announces its end with no signal of its
 * own. P_PID with numbers that the caller seized: what else the tracer waits for (its real children) is never taken.
 */

#ifndef __WALL
#define __WALL 0x40000000
#endif

int trace_seize(pid_t tid)
{
	const uintptr_t options = PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;

	return syscall(SYS_ptrace, PTRACE_SEIZE, tid, 0, options) < 0 ? -errno : 0;
}

int trace_interrupt(pid_t tid)
{
	return syscall(SYS_ptrace, PTRACE_INTERRUPT, tid, 0, 0) < 0 ? -errno : 0;
}

enum trace_state trace_look(pid_t tid, int *ret_signal)
{
	siginfo_t info = { .si_pid = 0 };

	*ret_signal = 0;
	if (syscall(SYS_waitid, P_PID, tid, &info, WNOHANG | WEXITED | WSTOPPED | __WALL, NULL) < 0)
		return TRACE_GONE;
	if (!info.si_pid)
		return TRACE_RUNS;
	if (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED)
		return TRACE_GONE;
	if (info.si_status == (SIGTRAP | PTRACE_EVENT_EXEC << 8))
		return TRACE_AT_EXEC;
	/* A signal on its way is delivered; a stop that ptrace made is none (its event is in the higher byte). */
	if (!(info.si_status >> 8))
		*ret_signal = info.si_status;
	return TRACE_STOPPED;
}

bool trace_release(pid_t tid, int signal_number)
{
	return syscall(SYS_ptrace, PTRACE_DETACH, tid, 0, (uintptr_t)signal_number) == 0;
}
