/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who has a working directory or an open directory in a tree that directory-move.c moves: those directories are
 * removed, so each of these processes opens the new one in its place, by calls that are made in it while it is stopped
 * (os/remote/trace-call.h). Runs in the child of the box that moves.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

enum { HOLDERS_MAX = 1024, HOLDER_THREADS_MAX = 8192, HOLDERS_KEPT_MAX = 65536 };

struct holder {
	pid_t tid;                   /* the thread that will open it, numbered as we see it */
	pid_t inner_pid, inner_tid;  /* as the sandbox does */
	int fd;                      /* its descriptor; AT_FDCWD: its working directory */
	int flags;                   /* open(2), of a descriptor */
	bool is_second;              /* below the second of two trees that change places */
	char *below;                 /* owned: where, behind the path of the tree; begins with '/', or is empty */
};

struct holders {
	struct holder *holders;      /* owned */
	size_t count;
	bool is_inner;               /* the sandbox has a /proc of its own, by whose numbers they were found */
	uint64_t *kept;              /* owned: numbers of the files that are open or watched, ascending */
	size_t kept_count;
	bool keeps_all;              /* they are too many */
	pid_t *threads;              /* owned: every thread of these processes, stopped or about to */
	size_t thread_count;
};

/* Lets go whom holders_seize() stopped, and frees the list. */
void holders_done(struct holders *holders);

/*
 * Finds them, and the files of the trees that somebody has open or watches (inotify(7)), while everything stands
 * still. first and second (NULL: none) are the trees' paths as seen inside. -E2BIG:
 * there are too many.
 */
int holders_find(struct holders *holders, pid_t init_pid, const char *first, const char *second) MUST_USE;

/* Has all their threads stop before they go on. -EPERM: something else traces one of them; none stops then. */
int holders_seize(struct holders *holders, pid_t init_pid) MUST_USE;

/*
 * Once everything goes on: each opens what it had at its new path, and goes on. first and second are where the trees
 * are now. How many could not.
 */
unsigned holders_redirect(struct holders *holders, const char *first, const char *second);
