/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Stops everything inside for a moment (a snapshot, a move, a person's decision), and lets it go on. At most one holder
 * at a time has the sandbox stand still; no clock of the sandbox runs meanwhile. Run by atoll-box.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "os/remote/hold.h"

struct freeze;
struct run;

enum { FREEZE_MESSAGES_MAX = 64 };

/* What a freeze is for. Borrowed while it lasts; its address says whose it is. */
struct freeze_holder {
	/* It has ended: writes what the log is to say of it (freeze_log(), or a record of the holder's own).
	 * NULL: nothing. */
	int (*thawed)(const struct freeze *freeze, uint64_t frozen_ns);
	bool ends_run;     /* once its time is up; else everything goes on */
	bool yields_to_signal; /* a signal for the command is the decision that it waits for */
	bool counts_time;  /* it is no pause of the agent's: its clocks get no time back */
	bool traces;	   /* it traces processes inside by itself, so that nobody else may: SIGSTOP is all */
};

/* What box/ does at a freeze. */
struct freeze_owner {
	/*
	 * Callers that wait for an answer of ours do not stop: has them make their call again when they go
	 * on. Called again and again until all stand still, so it sends them away before it returns.
	 * Negative: the log failed.
	 */
	int (*release)(void *context);
	void (*begun)(void *context);			  /* one that lasts until a person says more */
	void (*ended)(void *context, uint64_t unused_ns); /* all goes on; for so long nobody could use any time */
	void *context;
};

struct freeze {
	struct run *run;
	struct freeze_owner owner;
	const struct freeze_holder *holder; /* NULL: nobody's, everything runs */
	bool by_signals;	/* by us, because no freezer can be had */
	bool is_settling;	/* not all of them stand still yet, and nobody waits for that */
	bool has_woken;		/* after all stood still, somebody was found running */
	struct hold hold; /* who traces them meanwhile */
	unsigned quiet;		/* looks in a row that found nobody who runs */
	pid_t *stopped;		/* owned: whom we stopped, in inner or outer numbers as the procfs has them */
	size_t stopped_count;
	uint64_t watched_ns;	/* when those who are not held were looked at */
	uint64_t since_ns, until_ns; /* CLOCK_MONOTONIC; until: when patience ends */
	unsigned messages;	/* sent to init meanwhile: it does not read them, and its socket has an end */
	char name[64];		/* what for, escaped: for the log */
};

/* Nothing stands still. run and what owner has are borrowed. */
void freeze_init(struct freeze *freeze, struct run *run, const struct freeze_owner *owner);

/*
 * Stops every process inside; back when all stand still, for at most CONTROL_FREEZE_MAX_MS. -EBUSY: somebody holds it
 * already; -ETIMEDOUT: something cannot be stopped now (then all goes on); -ESHUTDOWN: the sandbox is ending. name:
 * borrowed for the call, may be NULL.
 */
int freeze_begin(struct freeze *freeze, const struct freeze_holder *holder, const char *name) MUST_USE;

/*
 * The same where something went wrong inside: it does not wait. Who has not stopped yet is stopped as soon as it can
 * be, and looked for at each turn of the loop. until_ns: when patience ends (CLOCK_MONOTONIC). -EBUSY, -ESHUTDOWN, or
 * another error of the freezer: all goes on.
 */
int freeze_begin_soon(struct freeze *freeze, const struct freeze_holder *holder, const char *name, uint64_t until_ns)
	MUST_USE;

/* As freeze_begin(), until until_ns (CLOCK_MONOTONIC; UINT64_MAX: until somebody ends it), and people see it. */
int freeze_begin_lasting(struct freeze *freeze, const struct freeze_holder *holder, const char *name,
			 uint64_t until_ns) MUST_USE;

/* How long until freeze_check() has something to do, in ms; -1: nothing stands still, or nothing ends that by
 * itself. */
int freeze_timeout_ms(const struct freeze *freeze, uint64_t now_ns);

/*
 * Lets everything go on, gives the clocks their time back, and notes it in the log. Nothing happens where nothing is
 * frozen. Negative when the log cannot be written or a process cannot be continued: the sandbox must end.
 */
int freeze_end(struct freeze *freeze) MUST_USE;

/* Ends a freeze whose time is up, or during which init's socket filled up. Negative as freeze_end(). */
int freeze_check(struct freeze *freeze, uint64_t now_ns) MUST_USE;

/*
 * Whether something holds the sandbox still, and everything has stood still since it does, as far as anybody can tell.
 * False for good once somebody was found running: one that cannot be traced can have a timer of its own send it
 * SIGCONT. It is looked for ten times a second, and now.
 */
bool freeze_stood_still(struct freeze *freeze) MUST_USE;

/* A record of this freeze as a snapshot's: a holder's `thawed`. Negative: the log failed. */
int freeze_log(const struct freeze *freeze, uint64_t frozen_ns) MUST_USE;

/* Whether anything holds the sandbox still. */
static inline bool freeze_is_on(const struct freeze *freeze)
{
	return freeze->holder;
}

/* Whether this one does. */
static inline bool freeze_is_held_by(const struct freeze *freeze, const struct freeze_holder *holder)
{
	return freeze->holder && freeze->holder == holder;
}

/* One more message goes to init, which reads none while it stands still. */
static inline void freeze_count_message(struct freeze *freeze)
{
	freeze->messages += freeze_is_on(freeze);
}
