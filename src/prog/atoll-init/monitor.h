/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The monitor of a terminal: a fork of atoll-init that leads the terminal's session, is the parent of the
 * command on it, and tells init by a pipe what becomes of the command. The sandbox may kill or stop it like any
 * process of its own; then init is the parent, and no more is lost than the job control of that terminal.
 */

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "spawn.h"

enum monitor_kind { MONITOR_STARTED, MONITOR_FAILED, MONITOR_STOPPED, MONITOR_EXITED };

/* One write of this to the pipe is atomic (< PIPE_BUF). */
struct monitor_event {
	uint32_t id;             /* of the command */
	enum monitor_kind kind;
	int32_t value;           /* pid · errno · signal · wait status */
	enum init_failure failure;
	uint64_t user_us, system_us, max_rss_bytes;
};

/* Sent to the monitor with sigqueue(3): the value is the signal for the command. SIGCONT also gives it the terminal. */
enum { MONITOR_SIGNAL = 40 };    /* a real-time signal that neither libc uses itself */

/*
 * Forks the monitor. The pid of the monitor, which the caller reaps, or -errno. terminal_fd (the slave)
 * and event_fd are borrowed. scratch: memory of the caller that the monitor gives back.
 */
pid_t monitor_start(struct spawn_plan *plan, int terminal_fd, int event_fd, struct buf *scratch) MUST_USE;
