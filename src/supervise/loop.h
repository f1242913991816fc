/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A small epoll loop: sources with a handler each, one event at a time, so that a handler may remove any
 * source, its own too. Used by atoll-box and by the clients that relay a terminal. No threads.
 *
 * The folder supervise/ is what a supervisor needs whatever it supervises: this loop and what hangs in it (streams,
 * terminals, processes, helper programs), the state of a run that all modules share (run.h), and the mechanisms that
 * several gates use: time limits, rates, refusals, and standing still. It decides nothing about what is allowed.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

struct loop_source;

struct loop {
	int epoll_fd;
	struct loop_source *first; /* borrowed; NULL: none */
	bool was_first;		   /* it ran last */
};

/* Owned by whoever embeds it; must stay at its address while it is added. */
struct loop_source {
	int fd;		 /* borrowed */
	uint32_t events; /* EPOLLIN | EPOLLOUT; 0: only errors and hang-ups */
	/* Negative: the loop's owner ends the sandbox with this error. */
	int (*ready)(void *context, uint32_t events);
	void *context;
	bool is_added;
};

/* Negative errno: no epoll instance can be made. */
int loop_init(struct loop *loop) MUST_USE;

/* Closes it; sources that are still added are the owners' to forget. Nothing where epoll_fd is FD_NONE. */
void loop_done(struct loop *loop);

/* Adds source->fd. -EPERM for files that epoll does not know (regular files): they are always ready. */
int loop_add(struct loop *loop, struct loop_source *source) MUST_USE;

/* Changes what is waited for; nothing happens when that is the same. */
int loop_change(struct loop *loop, struct loop_source *source, uint32_t events) MUST_USE;

/*
 * Adds the one source that is polled beside all others and not through epoll. Only so can who makes it ready have us
 * woken on its own CPU (a seccomp notification with the sync wake-up flag): the kernel loses that wish in an epoll.
 */
void loop_add_first(struct loop *loop, struct loop_source *source);

/* Removes it; nothing happens when it is not added. Must come before the fd is closed. */
void loop_remove(struct loop *loop, struct loop_source *source);

/*
 * Waits up to timeout_ms (-1: for ever) and runs one handler. 1: ran one, 0: time is up, or the negative value of the
 * handler.
 */
int loop_step(struct loop *loop, int timeout_ms) MUST_USE;
