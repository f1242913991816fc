/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The newest bytes of a stream, in memory of bounded size. Positions count from the beginning of the stream, so that
 * several readers can each have their own. Rings that share a budget share its memory. Pure.
 */

#include <stddef.h>
#include <stdint.h>

struct ring_budget {
	size_t used, max;        /* bytes */
};

struct ring {
	struct ring_budget *budget; /* borrowed */
	uint8_t *bytes;          /* owned; NULL while it is empty */
	size_t capacity, max, head;
	uint64_t from, to;       /* positions of what is in it */
};

/* Empty, of at most max bytes, which come out of a budget (borrowed). */
void ring_init(struct ring *ring, struct ring_budget *budget, size_t max);

/* Forgets all, and gives the memory back. */
void ring_done(struct ring *ring);

/*
 * Where up to *ret_size bytes can be written next; ring_added() says how many were. Where nothing more fits, they are
 * written over the oldest. NULL: there is no memory for a single one: what comes is lost (ring_lose()).
 */
void *ring_space(struct ring *ring, size_t *ret_size);

/* Returns how many of the oldest bytes are gone by that. */
uint64_t ring_added(struct ring *ring, size_t size);

/* So many bytes went by and are not in it; what was in it is gone, too. */
void ring_pass(struct ring *ring, uint64_t size);

/* The bytes at a position (from to `to`), as far as they lie together: their number, 0 at the end. */
size_t ring_at(const struct ring *ring, uint64_t position, const void **ret_bytes);

/* Drops what lies before the position. */
void ring_drop(struct ring *ring, uint64_t position);
