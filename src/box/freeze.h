/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Stops everything inside for the moment of a snapshot, and lets it go on. At most one client at a time holds the
 * sandbox still, for at most CONTROL_FREEZE_MAX_MS; no clock of the sandbox runs meanwhile. Run by atoll-box.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

struct box;

enum { FREEZE_MESSAGES_MAX = 64 };

struct freeze {
	const void *holder;	/* whose freeze it is; NULL: nobody's, everything runs */
	bool by_signals;	/* with SIGSTOP, because no freezer can be had */
	bool is_settling;	/* not all of them stand still yet, and nobody waits for that */
	unsigned quiet;		/* looks in a row that found nobody who runs */
	pid_t *stopped;		/* owned: whom we stopped, in inner or outer numbers as the procfs has them */
	size_t stopped_count;
	uint64_t since_ns, until_ns; /* CLOCK_MONOTONIC; until: when patience ends */
	unsigned messages;	/* sent to init meanwhile: it does not read them, and its socket has an end */
	char name[64];		/* what for, escaped: for the log */
};

/*
 * Stops every process inside; back when all stand still. -EBUSY: somebody holds it already; -ETIMEDOUT: something
 * cannot be stopped now (then all goes on); -ESHUTDOWN: the sandbox is ending. name: borrowed, may be NULL.
 */
int freeze_begin(struct box *box, const void *holder, const char *name) MUST_USE;

/*
 * The same where something went wrong inside: it does not wait. Who has not stopped yet is stopped as soon as it can
 * be, and looked for at each turn of the loop. -EBUSY, -ESHUTDOWN, or another error of the freezer: all goes on.
 */
int freeze_begin_soon(struct box *box, const void *holder, const char *name) MUST_USE;

/* How long until freeze_check() has something to do, in ms; -1: nobody is looked for. */
int freeze_timeout_ms(const struct box *box);

/*
 * Lets everything go on, gives the clocks their time back, and notes it in the log. Nothing happens where nothing is
 * frozen. Negative when the log cannot be written or a process cannot be continued: the sandbox must end.
 */
int freeze_end(struct box *box) MUST_USE;

/* Ends a freeze whose time is up, or during which init's socket filled up. */
int freeze_check(struct box *box, uint64_t now_ns) MUST_USE;

static inline bool freeze_is_held_by(const struct freeze *freeze, const void *holder)
{
	return freeze->holder && freeze->holder == holder;
}
