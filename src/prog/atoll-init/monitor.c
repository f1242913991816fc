/* SPDX-License-Identifier: Apache-2.0 */
#include "monitor.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "os/fd.h"
#include "os/pty.h"

struct anomaly {
	uint32_t id;
	int terminal, events;
	pid_t command;           /* also the number of its process group */
};

static uint64_t to_us(struct timeval time)
{
	return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_usec;
}

/* init gone means that the namespace goes, and we with it: nobody is left to tell. */
static void report(const struct anomaly *monitor, const struct monitor_event *event)
{
	if (fd_write_full(monitor->events, event, sizeof *event) < 0)
		_exit(1);
}

/* Stops are reported as they come; the end of the command is the end of the monitor. */
static void collect(const struct anomaly *monitor)
{
	struct monitor_event event = { .id = monitor->id };
	struct rusage usage;
	int status;

	while (wait4(monitor->command, &status, WNOHANG | WUNTRACED, &usage) > 0) {
		if (WIFSTOPPED(status)) {
			event.kind = MONITOR_STOPPED;
			event.value = WSTOPSIG(status);
			report(monitor, &event);
			continue;
		}
		event.kind = MONITOR_EXITED;
		event.value = status;
		event.user_us = to_us(usage.ru_utime);
		event.system_us = to_us(usage.ru_stime);
		event.max_rss_bytes = (uint64_t)usage.ru_maxrss << 10;
		report(monitor, &event);
		_exit(0);
	}
}

/* The command's group, and whichever group of the session has the terminal (a shell's job). */
static void forward(const struct anomaly *monitor, int signal_number)
{
	pid_t foreground;

	if (signal_number < 1 || signal_number > SIGRTMAX)
		return;
	if (signal_number == SIGCONT)
		(void)!tcsetpgrp(monitor->terminal, monitor->command);
	foreground = tcgetpgrp(monitor->terminal);
	kill(-monitor->command, signal_number);
	if (foreground > 1 && foreground != monitor->command && foreground != getpid())
		kill(-foreground, signal_number);
}

static void watch_command(const struct anomaly *monitor, const sigset_t *signals)
{
	siginfo_t info;

	for (;;) {
		switch (sigwaitinfo(signals, &info)) {
		case SIGCHLD:
			collect(monitor);
			break;
		case SIGHUP:
			/* The master was closed; the kernel tells the session leader only. */
			forward(monitor, SIGHUP);
			kill(-monitor->command, SIGCONT);
			break;
		case MONITOR_SIGNAL:
			forward(monitor, info.si_value.sival_int);
			break;
		}
	}
}

/*
 * Closes what fork copied of init: a master held here would keep its terminal from hanging up, and the wire is
 * init's alone. Only terminal, pipe and the command's own streams stay.
 */
static void drop_other_fds(const struct anomaly *monitor, const struct spawn_plan *plan)
{
	const int kept[] = { monitor->terminal, monitor->events, plan->fds[0], plan->fds[1], plan->fds[2] };
	int from = INIT_WIRE_FD;

	for (;;) {
		int next = INT_MAX;

		for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
			if (kept[i] >= from && kept[i] < next)
				next = kept[i];
		if (next > from)
			syscall(SYS_close_range, (unsigned)from, (unsigned)next - 1, 0);
		if (next == INT_MAX)
			return;
		from = next + 1;
	}
}

static int take_terminal(struct spawn_plan *plan, const struct anomaly *monitor)
{
	drop_other_fds(monitor, plan);
	if (setsid() < 0)
		return -errno;
	plan->terminal = monitor->terminal;
	for (int i = 0; i < 3; i++)
		if (plan->fds[i] < 0)
			plan->fds[i] = monitor->terminal;
	return pty_take_control(monitor->terminal);
}

static _Noreturn void monitor_main(struct spawn_plan *plan, struct anomaly *monitor, struct buf *scratch)
{
	struct monitor_event event = { .id = monitor->id, .kind = MONITOR_FAILED, .failure = INIT_FAILED_SETUP };
	sigset_t signals;
	int r = take_terminal(plan, monitor);

	/* fork cleared it; as PID 1 init takes all with it anyway. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (r == 0) {
		r = spawn_command(plan);
		event.failure = plan->failure;
	}
	if (r < 0) {
		event.value = -r;
		report(monitor, &event);
		_exit(1);
	}
	/* What the command has open is the command's alone: its end must be seen when it closes it. */
	for (int i = 0; i < 3; i++)
		if (plan->fds[i] != monitor->terminal)
			close_fd(&plan->fds[i]);
	monitor->command = r;
	event.kind = MONITOR_STARTED;
	event.value = r;
	report(monitor, &event);
	buf_done(scratch);
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, MONITOR_SIGNAL);
	watch_command(monitor, &signals);
	_exit(1);
}

pid_t monitor_start(struct spawn_plan *plan, int terminal_fd, int event_fd, struct buf *scratch)
{
	struct anomaly monitor = { .id = plan->spawn->id, .terminal = terminal_fd, .events = event_fd };
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0)
		monitor_main(plan, &monitor, scratch);
	return pid;
}
