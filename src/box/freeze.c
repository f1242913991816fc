/* SPDX-License-Identifier: Apache-2.0 */
#include "box/freeze.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "box/exec-gate.h"
#include "box/state.h"
#include "os/proc.h"
#include "wire/control.h"

/*
 * The freezer of a cgroup stops everything at once and unseen. Without one (an ordinary user on a machine without
 * delegation) it is SIGSTOP to each process, again and again until a look at all of them finds nobody who runs:
 * a process that forked between two looks is found by the next. PID 1 comes first and goes on last, so that it never
 * sees a child of its own stopped, which it would take for job control. Who was stopped already stays so.
 */

enum { MS_NS = 1000000, SETTLE_MS = 2000, SOON_MS = 10, LOOK_US = 500, STOPPED_MAX = 1 << 16, NAME_SHOWN = 56 };

static bool is_among(const struct freeze *freeze, pid_t pid)
{
	/* The newest are looked for most. */
	for (size_t i = freeze->stopped_count; i-- > 0;)
		if (freeze->stopped[i] == pid)
			return true;
	return false;
}

static int remember(struct freeze *freeze, pid_t pid)
{
	if (freeze->stopped_count % 64 == 0) {
		pid_t *grown;

		if (freeze->stopped_count == STOPPED_MAX)
			return -E2BIG;
		grown = realloc(freeze->stopped, (freeze->stopped_count + 64) * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		freeze->stopped = grown;
	}
	freeze->stopped[freeze->stopped_count++] = pid;
	return 0;
}

/*
 * 1: it stands still; 0: not yet. The signal is sent at every look, for somebody who was not stopped yet may have sent
 * SIGCONT after the first.
 */
static int stop_one(struct freeze *freeze, const struct proc_list *list, const struct proc_stat *stat)
{
	/* Init lets nobody look into it; it is ours, and where it waits so is in vfork(2) for a command that starts. */
	int r = stat->pid == 1 && stat->state == 'D' ? 1 : proc_is_still(list->proc_fd, stat);

	if (r != 0)
		return r == -ESRCH || r == -ENOENT ? 1 : r;
	if (!is_among(freeze, stat->pid))
		r = remember(freeze, stat->pid);
	if (r == 0)
		r = proc_signal(list->proc_fd, stat->pid, SIGSTOP);
	return r == -ESRCH || r == -ENOENT ? 1 : r;
}

/* One look at everybody. 1: each stood still when it was looked at. */
static int stop_all(struct box *box)
{
	struct proc_list list;
	int result = 1, r = proc_list_namespace(box->run.init.pid, &list);

	if (r < 0)
		return r;
	for (size_t i = 0; i < list.count && r >= 0; i++) {
		r = stop_one(&box->freeze, &list, &list.stats[i]);
		if (r == 0)
			result = 0;
	}
	proc_list_done(&list);
	return r < 0 ? r : result;
}

/*
 * 1: all stand still, by two looks in a row: who was looked at early may have been woken by one that was looked at
 * late. It runs until we stop it, so the second look sees it.
 */
static int look(struct box *box)
{
	int r = stop_all(box);

	box->freeze.quiet = r == 1 ? box->freeze.quiet + 1 : 0;
	return r < 0 ? r : box->freeze.quiet >= 2;
}

/* Callers that wait for our answer do not stop: they make their call again when they go on. */
static int release_waiting(struct box *box)
{
	int r = 0;

	if (box->run.watch) {
		watch_set_signalled(box->run.watch, box->freeze.by_signals);
		r = watch_release_waiting(box->run.watch);
	}
	return r < 0 ? r : exec_gate_release(box);
}

static int stop_by_signals(struct box *box, unsigned patience_ms)
{
	uint64_t deadline_ns = clock_monotonic_ns() + patience_ms * (uint64_t)MS_NS;

	box->freeze.by_signals = true;
	/* PID 1 of the namespace ignores what comes from its own inside, but not from us. */
	if (pidref_signal(&box->run.init, SIGSTOP) < 0)
		return -ESHUTDOWN;
	for (;;) {
		int r = look(box);

		if (r)
			return r < 0 ? r : 0;
		r = release_waiting(box);
		if (r < 0)
			return r;
		if (clock_monotonic_ns() >= deadline_ns)
			return -ETIMEDOUT;
		nanosleep(&(struct timespec){ .tv_nsec = LOOK_US * 1000L }, NULL);
	}
}

/* Backwards, so that a child runs again before the parent that would see it stopped. */
static int continue_by_signals(struct box *box)
{
	struct freeze *freeze = &box->freeze;
	struct proc_list list;
	int result = 0, r = proc_list_namespace(box->run.init.pid, &list);

	for (size_t i = freeze->stopped_count; r == 0 && i-- > 0;) {
		int sent = proc_signal(list.proc_fd, freeze->stopped[i], SIGCONT);

		if (sent < 0 && sent != -ESRCH && sent != -ENOENT)
			result = sent;
	}
	if (r == 0)
		proc_list_done(&list);
	if (pidref_signal(&box->run.init, SIGCONT) < 0)
		return 0; /* it is dead, and so is everything else */
	return r < 0 ? r : result;
}

/* Whatever the freezer fails with, signals are left; half a freeze is taken back first. */
static int stop(struct box *box, bool is_soon)
{
	int r = limit_group_freeze(box->run.limits, true);

	if (r < 0 && r != -EOPNOTSUPP)
		r = limit_group_freeze(box->run.limits, false) < 0 ? -EIO : -EOPNOTSUPP;
	if (r == -EOPNOTSUPP)
		return stop_by_signals(box, is_soon ? SOON_MS : SETTLE_MS);
	if (r == 0)
		r = release_waiting(box);
	/* The kernel stops those that are left without us. */
	return r < 0 || is_soon ? r : limit_group_wait_frozen(box->run.limits);
}

static int go_on(struct box *box)
{
	return box->freeze.by_signals ? continue_by_signals(box) : limit_group_freeze(box->run.limits, false);
}

/* Forgets everything: the freeze is over. */
static void reset(struct freeze *freeze)
{
	free(freeze->stopped);
	*freeze = (struct freeze){ 0 };
}

static void set_name(struct freeze *freeze, const char *name)
{
	struct buf text;

	buf_init_fixed(&text, freeze->name, sizeof freeze->name);
	if (name)
		buf_put_escaped(&text, name, strlen(name), NAME_SHOWN);
	(void)buf_text(&text);
}

static int begin(struct box *box, const void *holder, const char *name, bool is_soon)
{
	struct freeze *freeze = &box->freeze;
	int r;

	if (freeze->holder)
		return -EBUSY;
	if (box->run.ended != ENDED_NOT || box->run.is_dead)
		return -ESHUTDOWN;
	freeze->since_ns = clock_monotonic_ns();
	freeze->until_ns = freeze->since_ns + CONTROL_FREEZE_MAX_MS * (uint64_t)MS_NS;
	r = stop(box, is_soon);
	freeze->is_settling = is_soon && freeze->by_signals && r == -ETIMEDOUT;
	if (r < 0 && !freeze->is_settling) {
		int again = go_on(box);

		reset(freeze);
		if (again < 0) /* what is half frozen and cannot be thawed is of no use to anybody */
			run_end(&box->run, ENDED_POLICY);
		return r;
	}
	freeze->holder = holder;
	set_name(freeze, name);
	return 0;
}

int freeze_begin(struct box *box, const void *holder, const char *name)
{
	return begin(box, holder, name, false);
}

/* For `atoll ps`, which is all that a failure would be missed by. */
static void show(struct box *box, bool is_frozen)
{
	struct session_record *record = &box->store.record;

	if (record->is_frozen == is_frozen)
		return;
	record->is_frozen = is_frozen;
	if (session_store(box->store.dir_fd, record) < 0)
		return;
}

int freeze_begin_soon(struct box *box, const void *holder, const char *name)
{
	int r = begin(box, holder, name, true);

	if (r == 0)
		show(box, true);
	return r;
}

/* One look at a turn of the loop. Who cannot be looked for is as good as running, unless nobody is left. */
static void settle(struct box *box)
{
	int r = look(box);

	box->freeze.is_settling = r == 0;
	if (r < 0 && r != -ESRCH)
		run_end(&box->run, ENDED_POLICY);
}

int freeze_timeout_ms(const struct box *box)
{
	return box->freeze.holder && box->freeze.is_settling ? SOON_MS : -1;
}

/* The time that nobody could use counts against no limit. */
static void give_back_time(struct box *box, uint64_t frozen_ns)
{
	clocks_pause(&box->clocks, frozen_ns);
	for (size_t i = 0; i < BOX_COMMANDS_MAX; i++)
		if (box->commands[i] && box->commands[i]->deadline_ns != UINT64_MAX)
			box->commands[i]->deadline_ns += frozen_ns;
}

int freeze_end(struct box *box)
{
	struct freeze *freeze = &box->freeze;
	uint64_t frozen_ns;
	int r, logged;

	if (!freeze->holder)
		return 0;
	r = go_on(box);
	frozen_ns = clock_monotonic_ns() - freeze->since_ns;
	if (!moves_hold(box))
		give_back_time(box, frozen_ns);
	/* One that was for an agent that fell is told as such. */
	logged = freeze_is_held_by(freeze, &box->standing) || moves_hold(box) ? 0
		 : freeze_is_held_by(freeze, &box->alerts) ? alert_log_freeze(box, frozen_ns)
							   : events_freeze(box, freeze->name, frozen_ns);
	reset(freeze);
	show(box, false);
	control_resume(box);
	return r < 0 ? r : logged;
}

int freeze_check(struct box *box, uint64_t now_ns)
{
	const struct freeze *freeze = &box->freeze;

	if (freeze->holder && freeze->is_settling)
		settle(box);
	if (!freeze->holder || (now_ns < freeze->until_ns && freeze->messages < FREEZE_MESSAGES_MAX))
		return 0;
	/* Nobody said that it may go on. */
	if (verify_external_holds(box)) {
		run_end(&box->run, ENDED_STOPPED);
		return 0;
	}
	return freeze_end(box);
}
