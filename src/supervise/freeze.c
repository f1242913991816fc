/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/freeze.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "audit/writer.h"
#include "base/buf.h"
#include "base/json.h"
#include "limit/limit.h"
#include "os/clock.h"
#include "os/proc.h"
#include "supervise/run.h"
#include "watch/watch.h"
#include "wire/control.h"

/*
 * The freezer of a cgroup stops everything at once and unseen. Without one (an ordinary user on a machine without
 * delegation) a child of ours traces everybody (os/remote/hold.h), since any SIGCONT ends a stop by a signal, and a
 * timer sends one while nobody runs. Who cannot be traced gets SIGSTOP, again and again until a look at all of them
 * finds nobody who runs: a process that forked between two looks is found by the next. As long as there is somebody
 * like that, we go on looking; who was found running once has not stood still.
 *
 * PID 1 gets SIGSTOP too: it comes first and goes on last, so that it never sees a child of its own stopped, which it
 * would take for job control. Should it be woken, it finds nothing to do. Who was stopped already stays so.
 */

enum { MS_NS = 1000000, SETTLE_MS = 2000, SOON_MS = 10, WATCH_MS = 100, HEAD_START_MS = 50, LOOK_US = 500,
       STOPPED_MAX = 1 << 16, NAME_SHOWN = 56 };

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
static int stop_all(struct freeze *freeze)
{
	struct proc_list list;
	int result = 1, r = proc_list_namespace(freeze->run->init.pid, &list);

	if (r < 0)
		return r;
	for (size_t i = 0; i < list.count && r >= 0; i++) {
		r = stop_one(freeze, &list, &list.stats[i]);
		if (r == 0)
			result = 0;
	}
	proc_list_done(&list);
	return r < 0 ? r : result;
}

/* Whether somebody is stopped by signals alone, and may go on without us. */
static bool must_be_watched(const struct freeze *freeze)
{
	return freeze->holder && freeze->by_signals && (!freeze->hold.child || freeze->hold.has_others);
}

/* Callers that wait for our answer do not stop: they make their call again when they go on. */
static int release_waiting(struct freeze *freeze)
{
	int r = 0;

	if (freeze->run->watch) {
		watch_set_signalled(freeze->run->watch, freeze->by_signals);
		r = watch_release_waiting(freeze->run->watch);
	}
	return r < 0 ? r : freeze->owner.release(freeze->owner.context);
}

/*
 * 1: all stand still, by two looks in a row: who was looked at early may have been woken by one that was looked at
 * late. It runs until we stop it, so the second look sees it.
 */
static int look(struct freeze *freeze)
{
	struct hold *hold = &freeze->hold;
	int r;

	hold_look(hold);
	/* Who is held needs no signal, of which its program and its parent would hear. */
	if (hold->child && !hold->has_begun &&
	    clock_monotonic_ns() < freeze->since_ns + HEAD_START_MS * (uint64_t)MS_NS)
		return 0;
	r = stop_all(freeze);
	freeze->quiet = r == 1 ? freeze->quiet + 1 : 0;
	if (r < 0)
		return r;
	/* Not before: who waits for us is sent SIGSTOP, and has been noted now as somebody to be sent SIGCONT. */
	if (freeze->quiet < 2 || (hold->child && !hold->is_complete))
		return (r = release_waiting(freeze)) < 0 ? r : 0;
	hold_settle(hold);
	return 1;
}

static int stop_by_signals(struct freeze *freeze, const struct freeze_holder *holder, unsigned patience_ms)
{
	uint64_t deadline_ns = clock_monotonic_ns() + patience_ms * (uint64_t)MS_NS;

	freeze->by_signals = true;
	/* PID 1 of the namespace ignores what comes from its own inside, but not from us. */
	if (pidref_signal(&freeze->run->init, SIGSTOP) < 0)
		return -ESHUTDOWN;
	/* Where it cannot be had, they are stopped all the same. */
	if (!holder->traces)
		(void)!hold_begin(&freeze->hold, freeze->run->init.pid);
	for (;;) {
		int r = look(freeze);

		if (r)
			return r < 0 ? r : 0;
		if (clock_monotonic_ns() >= deadline_ns)
			return -ETIMEDOUT;
		nanosleep(&(struct timespec){ .tv_nsec = LOOK_US * 1000L }, NULL);
	}
}

/*
 * Backwards, so that a child runs again before the parent that would see it stopped. Who is held gets the signal before
 * it is let go.
 */
static int continue_by_signals(struct freeze *freeze)
{
	struct proc_list list;
	int result = 0, r = proc_list_namespace(freeze->run->init.pid, &list);

	for (size_t i = freeze->stopped_count; r == 0 && i-- > 0;) {
		int sent = proc_signal(list.proc_fd, freeze->stopped[i], SIGCONT);

		if (sent < 0 && sent != -ESRCH && sent != -ENOENT)
			result = sent;
	}
	if (r == 0)
		proc_list_done(&list);
	hold_end(&freeze->hold);
	if (pidref_signal(&freeze->run->init, SIGCONT) < 0)
		return 0; /* it is dead, and so is everything else */
	return r < 0 ? r : result;
}

/* Whatever the freezer fails with, signals are left; half a freeze is taken back first. */
static int stop(struct freeze *freeze, const struct freeze_holder *holder, bool is_soon)
{
	int r = limit_group_freeze(freeze->run->limits, true);

	if (r < 0 && r != -EOPNOTSUPP)
		r = limit_group_freeze(freeze->run->limits, false) < 0 ? -EIO : -EOPNOTSUPP;
	if (r == -EOPNOTSUPP)
		return stop_by_signals(freeze, holder, is_soon ? SOON_MS : SETTLE_MS);
	if (r == 0)
		r = release_waiting(freeze);
	/* The kernel stops those that are left without us. */
	return r < 0 || is_soon ? r : limit_group_wait_frozen(freeze->run->limits);
}

static int thaw_processes(struct freeze *freeze)
{
	return freeze->by_signals ? continue_by_signals(freeze) : limit_group_freeze(freeze->run->limits, false);
}

/* Forgets everything: the freeze is over. */
static void reset(struct freeze *freeze)
{
	free(freeze->stopped);
	*freeze = (struct freeze){ .run = freeze->run, .owner = freeze->owner };
}

static void set_name(struct freeze *freeze, const char *name)
{
	struct buf text;

	buf_init_fixed(&text, freeze->name, sizeof freeze->name);
	if (name)
		buf_put_escaped(&text, name, strlen(name), NAME_SHOWN);
	(void)buf_text(&text);
}

static int begin(struct freeze *freeze, const struct freeze_holder *holder, const char *name, bool is_soon)
{
	int r;

	if (freeze->holder)
		return -EBUSY;
	if (freeze->run->ended != ENDED_NOT || freeze->run->is_dead)
		return -ESHUTDOWN;
	freeze->since_ns = clock_monotonic_ns();
	freeze->until_ns = freeze->since_ns + CONTROL_FREEZE_MAX_MS * (uint64_t)MS_NS;
	r = stop(freeze, holder, is_soon);
	freeze->is_settling = is_soon && freeze->by_signals && r == -ETIMEDOUT;
	if (r < 0 && !freeze->is_settling) {
		int again = thaw_processes(freeze);

		reset(freeze);
		if (again < 0) /* what is half frozen and cannot be thawed is of no use to anybody */
			run_end(freeze->run, ENDED_POLICY);
		return r;
	}
	freeze->holder = holder;
	set_name(freeze, name);
	return 0;
}

void freeze_init(struct freeze *freeze, struct run *run, const struct freeze_owner *owner)
{
	*freeze = (struct freeze){ .run = run, .owner = *owner };
}

int freeze_begin(struct freeze *freeze, const struct freeze_holder *holder, const char *name)
{
	return begin(freeze, holder, name, false);
}

/* One that people see, and that lasts until until_ns. */
static int make_lasting(struct freeze *freeze, int begun, uint64_t until_ns)
{
	if (begun < 0)
		return begun;
	freeze->until_ns = until_ns;
	freeze->owner.begun(freeze->owner.context);
	return 0;
}

int freeze_begin_soon(struct freeze *freeze, const struct freeze_holder *holder, const char *name, uint64_t until_ns)
{
	return make_lasting(freeze, begin(freeze, holder, name, true), until_ns);
}

int freeze_begin_lasting(struct freeze *freeze, const struct freeze_holder *holder, const char *name,
			 uint64_t until_ns)
{
	return make_lasting(freeze, begin(freeze, holder, name, false), until_ns);
}

/* One look at a turn of the loop. Who cannot be looked for is as good as running, unless nobody is left. */
static void settle(struct freeze *freeze)
{
	int r = look(freeze);

	freeze->is_settling = r == 0;
	if (r < 0 && r != -ESRCH)
		run_end(freeze->run, ENDED_POLICY);
}

/* The same after all stood still. */
static void watch(struct freeze *freeze)
{
	freeze->watched_ns = clock_monotonic_ns();
	settle(freeze);
	freeze->has_woken |= freeze->is_settling || freeze->hold.has_woken;
}

bool freeze_stood_still(struct freeze *freeze)
{
	if (!freeze->holder || freeze->is_settling)
		return false;
	if (must_be_watched(freeze)) {
		freeze->has_woken |= !hold_check(&freeze->hold);
		watch(freeze);
	}
	return !freeze->has_woken;
}

int freeze_timeout_ms(const struct freeze *freeze, uint64_t now_ns)
{
	uint64_t left_ms;

	if (!freeze->holder)
		return -1;
	if (freeze->is_settling)
		return SOON_MS;
	if (freeze->until_ns == UINT64_MAX && !must_be_watched(freeze))
		return -1;
	left_ms = freeze->until_ns > now_ns ? (freeze->until_ns - now_ns) / MS_NS + 1 : 0;
	if (must_be_watched(freeze) && left_ms > WATCH_MS)
		left_ms = WATCH_MS;
	return left_ms > INT_MAX ? INT_MAX : (int)left_ms;
}

static void write_detail(struct json *json, const void *context)
{
	const uint64_t *frozen_ns = context;

	json_u64(json, "frozen_us", *frozen_ns / 1000);
}

int freeze_log(const struct freeze *freeze, uint64_t frozen_ns)
{
	struct audit_event event = {
		.type = AUDIT_STAGE_SNAPSHOT,
		.subject = freeze->name,
		.subject_size = strlen(freeze->name),
		.write_detail = write_detail,
		.context = &frozen_ns,
	};

	return audit_write(freeze->run->audit, &event);
}

int freeze_end(struct freeze *freeze)
{
	const struct freeze_holder *holder = freeze->holder;
	uint64_t frozen_ns;
	int r, logged;

	if (!holder)
		return 0;
	r = thaw_processes(freeze);
	frozen_ns = clock_monotonic_ns() - freeze->since_ns;
	logged = holder->thawed ? holder->thawed(freeze, frozen_ns) : 0;
	reset(freeze);
	freeze->owner.ended(freeze->owner.context, holder->counts_time ? 0 : frozen_ns);
	return r < 0 ? r : logged;
}

int freeze_check(struct freeze *freeze, uint64_t now_ns)
{
	if (freeze->holder && freeze->is_settling)
		settle(freeze);
	else if (must_be_watched(freeze) && now_ns >= freeze->watched_ns + WATCH_MS * (uint64_t)MS_NS)
		watch(freeze);
	if (!freeze->holder || (now_ns < freeze->until_ns && freeze->messages < FREEZE_MESSAGES_MAX))
		return 0;
	/* Nobody said that it may go on. */
	if (freeze->holder->ends_run) {
		run_end(freeze->run, ENDED_STOPPED);
		return 0;
	}
	return freeze_end(freeze);
}
