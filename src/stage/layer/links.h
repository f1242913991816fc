/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which file with several names was copied where, so that its other names become links to the one copy. A hash table
 * that only grows; bounded by its caller, who puts one entry for each file that it copies.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct links_entry {
	uint64_t device, inode;
	uint32_t tree;
	uint32_t slot_plus_one;      /* 0: empty */
};

struct links {
	struct links_entry *entries; /* owned */
	size_t count, capacity;      /* capacity: a power of two */
};

/* Frees the table; one that is all zeros has none. */
void links_done(struct links *links);
#define cleanup_links __attribute__((cleanup(links_done)))

/*
 * 1: the file has a copy in *ret_slot; 0: it has none yet, and slot is noted as its copy; -ENOMEM.
 */
int links_find_or_put(struct links *links, uint32_t tree, uint64_t device, uint64_t inode, uint32_t slot,
		      uint32_t *ret_slot) MUST_USE;
