/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * File calls whose callers wait: in a process of their own for what would block (a FIFO's other end, a lease), or for
 * the answer to a question. Bounded; who is killed or interrupted waits no longer. Runs in atoll-box.
 */

#include <linux/seccomp.h>
#include <stdbool.h>
#include <sys/types.h>

#include "watch/call/events.h"
#include "watch/call/reply.h"

struct file_waiting {
	struct seccomp_notif request; /* a question: the call, to be made anew */
	uint64_t id;
	pid_t pid;                    /* the caller */
	bool is_opening;              /* in a child, else a question or a move */
	bool is_patient;
	pid_t child;                  /* 0: none (any more) */
};

struct file_wait {
	const struct reply *reply;
	const struct watch_handlers *handlers;
	int timer_fd;                 /* owned; runs while somebody waits */
	size_t count;
	struct file_waiting *waiting; /* owned; made when first needed */
};

/* reply and handlers are borrowed; epoll_fd (borrowed) gets a timer, which is idle. 0 or -errno. */
int file_wait_init(struct file_wait *wait, int epoll_fd, const struct reply *reply,
		   const struct watch_handlers *handlers) MUST_USE;

/* Kills the children that would open for their callers, reaps them, and closes the timer. */
void file_wait_done(struct file_wait *wait);

struct file_wait_open {
	uint64_t id;
	pid_t pid;                    /* the caller */
	int object_fd, flags;         /* what is to be opened, and how */
	bool is_cloexec;
	uid_t uid;                    /* as whom */
	gid_t gid;
};

/* Opens it in a child, which answers. -ENFILE where too many wait. */
int file_wait_add_open(struct file_wait *wait, const struct file_wait_open *open) MUST_USE;

/*
 * Keeps the call, to be made again; -ENFILE as above. is_patient: a signal that its caller handles does not end the
 * wait, which would leave it without the outcome of what goes on all the same.
 */
int file_wait_add_again(struct file_wait *wait, const struct seccomp_notif *request, bool is_patient) MUST_USE;

/* Takes it out. False: nobody waits for it (any more). */
bool file_wait_take(struct file_wait *wait, uint64_t id, struct seccomp_notif *ret_request);

/* Once the timer or a child has something to say. 0, or -errno of the listener. */
int file_wait_look(struct file_wait *wait) MUST_USE;

/* Has all of these calls made again, because their callers are to be frozen: see watch_release_waiting(). */
int file_wait_release(struct file_wait *wait) MUST_USE;
