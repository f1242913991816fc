/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which inodes we left with which ctime. A ctime moves with every change of an inode, and nobody sets it back: a file
 * or directory whose inode and ctime are in the set was touched by nobody after us. One file with many names has one
 * ctime, which the last of our renames gave to it, so that it is looked up by its inode and not by a path. Within
 * stage/ only.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "stage/record/identity.h"
#include "stage/transaction/journal.h"

struct known_entry {
	uint64_t inode;
	struct stamp ctime;
	uint32_t tree_plus_one;       /* 0: empty */
};

struct known {
	struct known_entry *entries;  /* owned; open addressing */
	size_t count, capacity;       /* capacity: a power of two, at most half full */
};

/* Frees what it owns; one that is all zeros owns nothing. */
void known_done(struct known *known);
#define cleanup_known __attribute__((cleanup(known_done)))

/* Notes an identity; one with mode 0 is nothing. -ENOMEM. */
int known_put(struct known *known, uint32_t tree, const struct identity *identity) MUST_USE;

/* Notes all that a finished transaction left: files, directories, roots, and files that lost a name. -ENOMEM. */
int known_put_journal(struct known *known, const struct journal *journal) MUST_USE;

/* Whether a transaction left exactly this inode of the tree with exactly this ctime. */
bool known_has(const struct known *known, uint32_t tree, const struct identity *identity);
