/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What our own programs outside of the sandbox give up before they read a byte that a sandbox may have chosen: new
 * privileges, files, programs, the network, memory and time. A fault in one of their parsers is then worth no more
 * than what the program must be able to do. programs.c is the table of what each keeps. (The sandbox's own walls are
 * jail/'s.)
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

enum confine_program {
	CONFINE_LOG,             /* reads and prints what is open already */
	CONFINE_LEARN,           /* the same */
	CONFINE_POLICY,          /* reads files anywhere */
	CONFINE_SECRET,          /* changes files in the places; speaks to the terminal that is open */
	CONFINE_STAGE_READING,   /* reads files, attributes and links in the places; writes to what is open already */
	CONFINE_STAGE_WRITING,   /* also makes, changes, renames, syncs and removes files there */
	CONFINE_STAGE_RESTORE,   /* also makes files as another user: in the trees of a living session */
	CONFINE_STAGE_TEXT,      /* a child of atoll-stage that compares texts in memory, and nothing else */
	CONFINE_STAGE_KEEPER,    /* its parent, which makes a new one where it died */
	CONFINE_STAGE_BASE,      /* one that starts git, which reads the places */
	CONFINE_STAGE_COMMIT,    /* one that writes git's objects and refs in the places, and starts nothing */
	CONFINE_TEMPLATE,        /* makes, changes and removes files in the places */
	CONFINE_TOKEN,           /* changes files in the places; writes to what is open already */
	CONFINE_TOP,             /* draws on the terminal; speaks to the one socket that is open */
	CONFINE_DESK,            /* moves lines between sockets of the sandbox and one of the box */
	CONFINE_FILES,           /* does with files inside what their owner asks for, under the sandbox's own rules */
	CONFINE_NOTIFY_DESKTOP,  /* moves messages between the session bus and one socket of the box */
	CONFINE_NOTIFY_WEBHOOK,  /* connects to servers; reads how names are looked up */
	CONFINE_JUDGE_COMMAND,   /* starts the user's verifier, which reads anywhere and writes nowhere */
	CONFINE_JUDGE_MODEL,     /* as CONFINE_NOTIFY_WEBHOOK */
	CONFINE_FRONT,           /* moves bytes between sockets, and files that it is given */
	CONFINE_EGRESS,          /* moves bytes between sockets */
	CONFINE_VERIFY,          /* reads what is open already, and judges it */
	CONFINE_PROGRAM_COUNT,
};

/* A directory and what may be done below it (LANDLOCK_* of os/landlock.h). */
struct confine_place {
	int fd;                  /* borrowed */
	uint64_t rights;
};

/*
 * For good, for the calling process and all that come from it: no core file, no_new_privs, rlimits, Landlock, seccomp.
 * What is open stays so; files are reached in the places alone. A kernel without Landlock is no reason to
 * refuse, since the callers open beneath fds and the filter stands. Negative with *err (ERR_WALL) where a wall that
 * the kernel has cannot be put up: the caller ends.
 */
int confine_self(enum confine_program program, const struct confine_place *places, size_t count, struct err *err)
	MUST_USE;

/* False in a sanitizer's build, whose runtime makes system calls of its own: there is no filter and no memory limit. */
bool confine_has_filter(void);
