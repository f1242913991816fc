/* SPDX-License-Identifier: Apache-2.0 */
#include "os/remote/hold.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/num.h"
#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/path.h"
#include "os/proc.h"
#include "os/remote/trace.h"

/*
 * Theory of operation. The child seizes each thread and has it stop. What a thread that is held starts meanwhile is
 * held by the kernel from its first instruction, so that after one pass over all threads nobody new can come: but for
 * a process that was started while the pass went on, by one that it had not reached. So there are passes until two in
 * a row have found nobody new.
 *
 * A thread that another process inside traces cannot be seized. Its tracer is held, so that it stays at its next stop;
 * freeze.c has it stop by SIGSTOP. Should its tracer end (SIGKILL by a timer of its own), it may run until the next
 * pass gets it, or until it ends: the passes that follow find one more of ours, or one less of the others.
 *
 * When the child ends, all go on: the kernel lets a tracer's tracees go, and stops by a signal are stops again.
 */

#ifndef __WALL
#define __WALL 0x40000000
#endif

enum { MS_NS = 1000000, PASS_MS = 1, WATCH_MS = 100, QUIET_PASSES = 2, ANSWER_MS = 1000 };

struct pass {
	unsigned held;   /* threads that it got */
	unsigned others; /* and those that it cannot get */
};

struct report {
	uint32_t asked; /* how many messages of the box it has had before this pass */
	bool is_complete, has_others, has_woken;
};

/* ---- in the child ---- */

/* Has a thread stop, and all that it starts. 1: it is ours from now on; 0: it was already; -errno as of ptrace(2). */
static int seize(pid_t tid)
{
	const uintptr_t options = PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE;
	int r = trace_interrupt(tid);

	/* ESRCH: of one that is no tracee of ours. Of one that is, and has stopped, it changes nothing. */
	if (r != -ESRCH)
		return r;
	if (syscall(SYS_ptrace, PTRACE_SEIZE, tid, 0, options) < 0)
		return -errno;
	r = trace_interrupt(tid);
	return r < 0 ? r : 1;
}

/* Takes away every tracee that has ended: until then its parent inside, or the end of its namespace, waits. */
static void reap(void)
{
	siginfo_t info;

	/* WEXITED alone: a stop that nobody has waited for keeps its signal for the tracee. */
	do
		info.si_pid = 0;
	while (syscall(SYS_waitid, P_ALL, 0, &info, WNOHANG | WEXITED | __WALL, NULL) == 0 && info.si_pid);
}

static void hold_thread(struct pass *pass, pid_t tid)
{
	int r = seize(tid);

	pass->held += r == 1;
	pass->others += r < 0 && r != -ESRCH;
}

static void hold_process(struct pass *pass, int proc_fd, const struct proc_stat *stat)
{
	const struct dirent *entry;
	char path[32];
	uint64_t tid;
	DIR *list;
	int r;

	if (strchr("ZX", stat->state) && stat->threads <= 1)
		return;
	if (stat->threads <= 1) {
		hold_thread(pass, stat->pid);
		return;
	}
	r = str_format(path, sizeof path, "%d/task", (int)stat->pid);
	list = path_list(r < 0 ? r : fd_open_at(proc_fd, path, O_RDONLY | O_DIRECTORY, 0));
	if (!list)
		return; /* it has ended */
	while ((entry = readdir(list)))
		if (num_parse_u64(entry->d_name, &tid) == 0)
			hold_thread(pass, (pid_t)tid);
	closedir(list);
}

/* Over all processes of the machine: ptrace(2) takes our own numbers, and the sandbox's /proc has others. */
static int hold_all(struct pass *pass, pid_t init_pid)
{
	struct proc_list list;
	int r = proc_list_descendants(init_pid, &list);

	if (r < 0)
		return r;
	for (size_t i = 0; i < list.count; i++)
		if (list.stats[i].pid != init_pid)
			hold_process(pass, list.proc_fd, &list.stats[i]);
	proc_list_done(&list);
	return 0;
}

/* How many messages came from the box meanwhile. */
static unsigned wait_and_reap(int link_fd, int signal_fd, int wait_ms)
{
	struct pollfd polled[] = { { .fd = link_fd, .events = POLLIN }, { .fd = signal_fd, .events = POLLIN } };
	struct signalfd_siginfo signalled;
	ssize_t size = -1;
	char byte;

	if (poll(polled, ARRAY_SIZE(polled), wait_ms) < 0 && errno != EINTR)
		_exit(1);
	if (polled[0].revents)
		size = recv(link_fd, &byte, sizeof byte, MSG_DONTWAIT);
	if (size == 0)
		_exit(0);
	(void)!read(signal_fd, &signalled, sizeof signalled);
	reap();
	return size > 0;
}

static int open_signals(void)
{
	sigset_t signals;

	sigfillset(&signals);
	sigprocmask(SIG_SETMASK, &signals, NULL);
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	return signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
}

static _Noreturn void be_child(pid_t init_pid, pid_t box, int link_fd)
{
	int signal_fd = open_signals();
	struct report report = { 0 };
	unsigned others = 0;

	if (signal_fd < 0 || fd_keep_only((const int[]){ link_fd, signal_fd }, 2) < 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != box)
		_exit(1);
	for (unsigned quiet = 0;;) {
		struct pass pass = { 0 };
		unsigned asked;

		if (hold_all(&pass, init_pid) < 0)
			_exit(1);
		quiet = pass.held ? 0 : quiet + 1;
		report.is_complete = quiet >= QUIET_PASSES;
		report.has_others = pass.others;
		report.has_woken |= report.asked && (pass.held || pass.others != others);
		others = pass.others;
		(void)!send(link_fd, &report, sizeof report, MSG_DONTWAIT | MSG_NOSIGNAL);
		do
			asked = wait_and_reap(link_fd, signal_fd,
					      !report.asked ? PASS_MS : others || !report.is_complete ? WATCH_MS : -1);
		while (report.asked && !asked && !others && report.is_complete);
		report.asked += asked;
	}
}

/* ---- in the box ---- */

int hold_begin(struct hold *hold, pid_t init_pid)
{
	pid_t box = getpid();
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	hold->child = fork();
	if (hold->child == 0)
		be_child(init_pid, box, ends[1]);
	close(ends[1]);
	if (hold->child < 0) {
		close(ends[0]);
		*hold = (struct hold){ 0 };
		return -EAGAIN;
	}
	hold->link_fd = ends[0];
	return 0;
}

/* Where it has ended, SIGSTOP is left. */
static void note_end(struct hold *hold)
{
	hold->has_begun = hold->is_complete = hold->has_others = true;
	hold->answered = hold->asked;
}

void hold_look(struct hold *hold)
{
	struct report report;
	ssize_t size;

	while (hold->child && (size = recv(hold->link_fd, &report, sizeof report, MSG_DONTWAIT)) >= 0) {
		if (size != sizeof report) {
			note_end(hold);
			return;
		}
		hold->has_begun = true;
		hold->is_complete = report.is_complete;
		hold->has_others = report.has_others;
		hold->has_woken = report.has_woken;
		hold->answered = report.asked;
	}
}

static void ask(struct hold *hold)
{
	hold->asked += send(hold->link_fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

void hold_settle(struct hold *hold)
{
	if (hold->child && !hold->asked)
		ask(hold);
}

bool hold_check(struct hold *hold)
{
	uint64_t end_ns = clock_monotonic_ns() + ANSWER_MS * (uint64_t)MS_NS;

	if (!hold->child)
		return true;
	ask(hold);
	for (hold_look(hold); hold->answered != hold->asked; hold_look(hold)) {
		struct pollfd polled = { .fd = hold->link_fd, .events = POLLIN };

		if (clock_monotonic_ns() >= end_ns || (poll(&polled, 1, WATCH_MS) < 0 && errno != EINTR))
			return false;
	}
	return !hold->has_woken;
}

void hold_end(struct hold *hold)
{
	if (!hold->child)
		return;
	kill(hold->child, SIGKILL);
	while (waitpid(hold->child, NULL, 0) < 0 && errno == EINTR)
		;
	close_fd(&hold->link_fd);
	*hold = (struct hold){ 0 };
}
