/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How fast the owner of keys makes sandboxes: as many at once as the key has for a minute, then as time passes. Those
 * that were killed count. One entry for each owner that made one since the start. Runs in atolld.
 */

#include "base/cleanup.h"
#include "service/launcher/store/database.h"

struct quota;

struct quotas {
	struct quota *first;         /* owned */
	uint64_t looked_ns;          /* at the memory of the machine; 0: never */
	uint32_t pressure;           /* then: hundredths of a percent */
	uint64_t disk_looked_ns, disk_free;   /* the same of a disk, in bytes */
};

/* Frees all entries; who was too fast is forgotten. */
void quotas_done(struct quotas *quotas);

/*
 * Takes as many creations from what this key's owner has: all, 0, or none: in how many seconds to ask again; -ENOMEM.
 */
int quotas_take(struct quotas *quotas, const struct key_row *key, uint64_t count, uint64_t now_ns) MUST_USE;

/*
 * Whether processes wait for memory for this share of the time (percent) or more: what is made now would have the
 * machine swap, or end something. Never where the kernel does not say. Looks twice a second at most.
 */
bool quotas_are_pressed(struct quotas *quotas, uint64_t percent, uint64_t now_ns);

/*
 * Whether fewer bytes than these are free for us on the disk of a path. Never where that cannot be told. Looks twice a
 * second at most.
 */
bool quotas_is_disk_short(struct quotas *quotas, const char *path, uint64_t bytes, uint64_t now_ns);
