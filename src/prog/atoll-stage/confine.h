/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * atoll-stage gives up what it does not need before it looks at what a sandbox wrote: files beyond the staged trees and
 * the layers, the network, new programs. A fault in it is then worth no more than what the verb itself may do.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "prog/atoll-stage/opened.h"

/* A tree of files and what may be done in it (LANDLOCK_* of os/landlock.h). */
struct confine_rule {
	int fd;            /* borrowed; a directory */
	uint64_t rights;
};

enum confine_kind {
	CONFINE_READING,   /* reads files, attributes and links; writes to what is open already */
	CONFINE_WRITING,   /* also makes, changes, renames, syncs and removes files within the rules */
};

/*
 * One way: no_new_privs, rlimits, Landlock with these rules, seccomp. The caller opened everything else that it needs.
 * A kernel without Landlock is no reason to refuse: all that is opened is opened beneath fds, and the filter stands.
 */
int confine_self(enum confine_kind kind, const struct confine_rule *rules, size_t count, struct err *err) MUST_USE;

/* CONFINE_WRITING: the stage directory and the trees may be written, other layers of the chain are read. */
int confine_writing(const struct opened *opened, struct err *err) MUST_USE;

/* CONFINE_READING with the rules of a session: its stage directory, the layers of its chain, the trees. */
int confine_reading(const struct opened *opened, struct err *err) MUST_USE;
