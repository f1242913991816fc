/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/exec-stop.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/remote/trace.h"

/*
 * The kernel reads an exec's path and arguments again after the answer to a notification, so what was judged need not
 * be what runs: another thread, or whoever shares the memory or the directory, had all the time in between. What is
 * there after the exec cannot be exchanged any more, and a tracee stops there before its first instruction
 * (PTRACE_EVENT_EXEC).
 *
 * A thread is seized while it waits in the notification; then it gets its answer, and then it is interrupted: an exec
 * that fails comes back to its program, and stops on the way because of that. So no tracee of ours ever runs code of
 * its own, and no signal of its own waits for us. A second exec of the same process has to wait for the first: seizing
 * waits for the lock that an exec holds, which a thread of ours, dead and not yet waited for, would keep held.
 *
 * An exec can be made to take as long as somebody inside wants: by a lease on the file, by another thread that does not
 * die since it is traced. It has a time, so that the places for those that are held cannot be used up.
 */

enum { NS_PER_MS = 1000000, NS_PER_S = 1000000000, LAST_MS = 2000 };

void exec_stop_init(struct exec_stops *held)
{
	held->signal_fd = held->timer_fd = FD_NONE;
	held->limit_ms = EXEC_STOP_LIMIT_MS;
	held->count = 0;
}


/* Signals of children are for nobody else here: whoever starts some waits for them by their number. */
static int open_signals(struct exec_stops *held)
{
	sigset_t set;

	if (held->signal_fd >= 0)
		return 0;
	/* Ignored, as a caller may have left it, no stop would be told. */
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	held->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (held->timer_fd < 0)
		return -errno;
	held->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (held->signal_fd >= 0)
		return 0;
	close_fd(&held->timer_fd);
	return -errno;
}

/* To the first end of a time; none: it rests. */
static void set_timer(const struct exec_stops *held)
{
	struct itimerspec when = { 0 };
	uint64_t first_ns = UINT64_MAX;

	for (size_t i = 0; i < held->count; i++)
		if (!held->execs[i].is_dying && !held->execs[i].is_stray && held->execs[i].until_ns < first_ns)
			first_ns = held->execs[i].until_ns;
	if (first_ns != UINT64_MAX)
		when.it_value = (struct timespec){ .tv_sec = (time_t)(first_ns / NS_PER_S),
						   .tv_nsec = (long)(first_ns % NS_PER_S) };
	timerfd_settime(held->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static uint64_t end_of_time(const struct exec_stops *held)
{
	return clock_monotonic_ns() + held->limit_ms * NS_PER_MS;
}

/* 0 where nobody can tell. */
static pid_t process_of(pid_t tid)
{
	cleanup_free char *text = NULL;
	char path[32];
	const char *at;
	size_t size;

	/* Most threads that execute programs are alone. */
	if (syscall(SYS_tgkill, tid, tid, 0) == 0)
		return tid;
	if (str_format(path, sizeof path, "/proc/%d/status", tid) < 0 ||
	    fd_read_file_at(AT_FDCWD, path, 16 << 10, &text, &size) < 0)
		return 0;
	at = strstr(text, "\nTgid:");
	return at ? (pid_t)strtol(at + strlen("\nTgid:"), NULL, 10) : 0;
}

static struct exec_stop *find_process(struct exec_stops *held, pid_t tgid)
{
	for (size_t i = 0; i < held->count; i++)
		if (held->execs[i].tgid == tgid)
			return &held->execs[i];
	return NULL;
}

int exec_stop_begin(struct exec_stops *held, pid_t tid, uint64_t token, uint64_t *ret_before)
{
	pid_t tgid = process_of(tid);
	struct exec_stop *other = find_process(held, tgid);
	int r = tgid > 0 ? open_signals(held) : -ESRCH;

	if (r < 0)
		return r;
	if (other && other->tid == tid && !other->is_dying) {
		*ret_before = other->token;
		/* One that was let go meanwhile and has not been looked at: this exec is meant. */
		other->is_stray = false;
		other->token = token;
		other->until_ns = end_of_time(held);
		set_timer(held);
		return 1;
	}
	if (other || held->count == EXEC_STOPS_MAX)
		return -EAGAIN;
	r = trace_seize(tid);
	if (r < 0)
		return r;
	held->execs[held->count++] = (struct exec_stop){ .tid = tid, .tgid = tgid, .token = token,
							 .until_ns = end_of_time(held) };
	if (held->count == 1)
		set_timer(held);
	return 0;
}

void exec_stop_abandon(struct exec_stops *held, pid_t tid)
{
	for (size_t i = 0; i < held->count; i++)
		if (held->execs[i].tid == tid && !held->execs[i].is_dying)
			held->execs[i].is_stray = true;
	exec_stop_continued(held, tid);
}

void exec_stop_continued(const struct exec_stops *held, pid_t tid)
{
	/* ESRCH: it is gone, which its tracer is told. */
	(void)!trace_interrupt(tid);
}

static enum trace_state look(const struct exec_stop *exec, pid_t *ret_pid, int *ret_signal)
{
	enum trace_state state = trace_look(exec->tid, ret_signal);

	*ret_pid = exec->tid;
	if (state != TRACE_GONE || exec->tid == exec->tgid)
		return state;
	*ret_pid = exec->tgid;
	return trace_look(exec->tgid, ret_signal);
}

/* It waits for nothing but its end, of which its tracer is told. */
static void expect_end(struct exec_stop *exec, pid_t pid)
{
	exec->is_dying = true;
	exec->tid = exec->tgid = pid;
}

/*
 * What was killed in its stop cannot be let go, and stays a tracee: were it forgotten here, nobody would ever wait for
 * it, neither its parent nor the end of its namespace would come. Whether it is to be forgotten.
 */
static bool let_go(struct exec_stop *exec, pid_t pid, int signal_number)
{
	if (trace_release(pid, signal_number))
		return true;
	expect_end(exec, pid);
	return false;
}

/* Whether it is to be forgotten. */
static bool conclude_image(struct exec_stop *exec, pid_t pid, const struct exec_stop_events *events, int *result)
{
	int r = events->on_image(events->context, exec->token, pid);

	if (r == 0)
		return let_go(exec, pid, 0);
	if (r < 0 && *result >= 0)
		*result = r;
	/* Stopped as it is, SIGKILL is the only thing that it will ever get. */
	kill(pid, SIGKILL);
	expect_end(exec, pid);
	return false;
}

/* Whether it is to be forgotten; the first negative of a handler is kept in *result. */
static bool look_at(struct exec_stop *exec, const struct exec_stop_events *events, int *result)
{
	int signal_number;
	pid_t pid;

	switch (look(exec, &pid, &signal_number)) {
	case TRACE_RUNS:
		return false;
	case TRACE_AT_EXEC:
		if (exec->is_dying)
			return false;
		return exec->is_stray ? let_go(exec, pid, 0) : conclude_image(exec, pid, events, result);
	case TRACE_STOPPED:
		if (exec->is_dying)
			return false;
		if (!exec->is_stray)
			events->on_over(events->context, exec->token);
		return let_go(exec, pid, signal_number);
	case TRACE_GONE:
		break;
	}
	if (!exec->is_dying && !exec->is_stray)
		events->on_over(events->context, exec->token);
	return true;
}

/* Whatever it waits for inside the kernel: it never comes back from there. */
static void end_late(struct exec_stop *exec, uint64_t now_ns, const struct exec_stop_events *events, int *result)
{
	int r;

	if (exec->is_dying || exec->is_stray || now_ns < exec->until_ns)
		return;
	kill(exec->tgid, SIGKILL);
	exec->is_dying = true;
	r = events->on_late(events->context, exec->token, exec->tid, ETIMEDOUT);
	*result = *result < 0 ? *result : r;
}

int exec_stop_look(struct exec_stops *held, const struct exec_stop_events *events)
{
	struct signalfd_siginfo ignored[8];
	uint64_t expired, now_ns = clock_monotonic_ns();
	int result = 0;

	while (read(held->signal_fd, ignored, sizeof ignored) == (ssize_t)sizeof ignored)
		continue;
	for (size_t i = 0; i < held->count;)
		if (look_at(&held->execs[i], events, &result))
			held->execs[i] = held->execs[--held->count];
		else
			end_late(&held->execs[i++], now_ns, events, &result);
	if (read(held->timer_fd, &expired, sizeof expired) == (ssize_t)sizeof expired)
		set_timer(held);
	return result < 0 ? result : 0;
}

/*
 * What still is a tracee ends here, and is waited for: the listener is closed when all of them are on their way out,
 * and until its tracer has seen that, neither their parent nor their namespace comes to an end. One that is not ours
 * after all is left as it is.
 */
void exec_stop_done(struct exec_stops *held)
{
	const struct timespec pause = { .tv_nsec = NS_PER_MS };
	uint64_t until_ns = clock_monotonic_ns() + LAST_MS * (uint64_t)NS_PER_MS;
	int ignored;
	pid_t pid;

	for (size_t i = 0; i < held->count;)
		if (held->execs[i].is_stray)
			held->execs[i] = held->execs[--held->count];
		else
			kill(held->execs[i++].tgid, SIGKILL);
	while (held->count && clock_monotonic_ns() < until_ns) {
		for (size_t i = 0; i < held->count;)
			if (look(&held->execs[i], &pid, &ignored) == TRACE_GONE)
				held->execs[i] = held->execs[--held->count];
			else
				i++;
		if (held->count)
			nanosleep(&pause, NULL);
	}
	close_fd(&held->signal_fd);
	close_fd(&held->timer_fd);
	held->count = 0;
}
