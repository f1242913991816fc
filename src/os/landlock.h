/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Landlock (landlock(7)): rules over file hierarchies that a process puts on itself for good. Constants up to
 * ABI 7 stand here, because the headers that this is built with may be older than the kernel it runs on.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

enum {
	LANDLOCK_EXECUTE = 1 << 0,
	LANDLOCK_WRITE_FILE = 1 << 1,
	LANDLOCK_READ_FILE = 1 << 2,
	LANDLOCK_READ_DIR = 1 << 3,
	LANDLOCK_REMOVE_DIR = 1 << 4,
	LANDLOCK_REMOVE_FILE = 1 << 5,
	LANDLOCK_MAKE_CHAR = 1 << 6,
	LANDLOCK_MAKE_DIR = 1 << 7,
	LANDLOCK_MAKE_REG = 1 << 8,
	LANDLOCK_MAKE_SOCK = 1 << 9,
	LANDLOCK_MAKE_FIFO = 1 << 10,
	LANDLOCK_MAKE_BLOCK = 1 << 11,
	LANDLOCK_MAKE_SYM = 1 << 12,
	LANDLOCK_REFER = 1 << 13,      /* ABI 2 */
	LANDLOCK_TRUNCATE = 1 << 14,   /* ABI 3 */
	LANDLOCK_IOCTL_DEV = 1 << 15,  /* ABI 5 */
};

enum { LANDLOCK_ABI_SCOPES = 6 };

/* The kernel's ABI, 0 where there is no Landlock. */
int landlock_abi(void);

/* All file rights that an ABI knows: what a ruleset of it denies unless a rule allows it. */
uint64_t landlock_rights(int abi);

/*
 * A ruleset that handles all file rights of the ABI and, with scopes (ABI 6), abstract unix sockets and signals
 * beyond the domain. TCP rights are left to the network namespace. The fd, or -errno.
 */
int landlock_ruleset_new(int abi, bool scopes) MUST_USE;

/*
 * One that handles no file right, under which mounts may be made: only the scopes. -EOPNOTSUPP where the ABI has none.
 * The fd, or -errno.
 */
int landlock_scopes_new(int abi) MUST_USE;

/*
 * Allows rights below (or at, for a file) what path_fd names; rights that the ABI or a file does not know are left
 * out. is_directory spares a stat.
 */
int landlock_allow(int ruleset_fd, int abi, int path_fd, bool is_directory, uint64_t rights) MUST_USE;

/* Puts the ruleset on the calling thread. Needs no_new_privs. */
int landlock_restrict(int ruleset_fd) MUST_USE;
