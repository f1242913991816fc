/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The bytes that the gate holds for those who do not take them, of all connections together. A connection that has more
 * than its part, while there are many, is read no further; where that is not enough, because what was promised by
 * windows of HTTP/2 still comes, the one with the most is ended. Runs in atoll-egress.
 */

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

enum {
	MEMORY_MAX = 64 << 20,          /* then the one with the most is ended */
	MEMORY_MANY = MEMORY_MAX / 2,   /* from here on each has its part, and no more */
	MEMORY_PART_MIN = 16 << 10,
	MEMORY_LOOK_MS = 50,            /* how often who has too much looks whether there is room again */
};

struct memory_share;

struct memory_budget {
	struct memory_share *first;
	size_t bytes, count;
	struct event relief;
};

/* A connection's. The owner's; it is in a list while it is open. */
struct memory_share {
	struct memory_budget *memory;          /* NULL: not open */
	struct memory_share *next, **link;
	size_t bytes;
	/* Ends the connection, and closes the share. */
	void (*on_most)(void *context);
	void *context;
};

/* No share is open; base is borrowed, in whose loop connections are ended. -EINVAL: no timer can be made. */
int memory_init(struct memory_budget *memory, struct event_base *base) MUST_USE;

/* share must not move while it is open. */
void memory_open(struct memory_budget *memory, struct memory_share *share, void (*on_most)(void *context),
		 void *context);
void memory_close(struct memory_share *share);

/* So much it holds now. on_most() of any share may be called from the loop afterwards, never from here. */
void memory_set(struct memory_share *share, size_t bytes);

/* Whether it has more than its part at present. */
bool memory_is_short(const struct memory_share *share);
