/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The last lines of a session's log, as atoll-log makes them: escaped there, but taken for hostile here all the same.
 * Bounded: what is older is forgotten. Run by atoll-top.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

enum { EVENTS_MAX = 256, EVENT_SIZE = 512 };

struct events {
	char lines[EVENTS_MAX][EVENT_SIZE];  /* a ring; each terminated, what is longer is cut */
	size_t next, count;
	char partial[EVENT_SIZE];            /* of a line that is not whole yet */
	size_t partial_size;
};

void events_clear(struct events *events);

/* Reads what there is, up to a bound. 1: there may be more; 0: that was the end; -EAGAIN: nothing now. */
int events_read(struct events *events, int fd) MUST_USE;

/* The line so many before the last one (0), or NULL. */
const char *events_at(const struct events *events, size_t back);

/* Whether a line is about something that was refused. */
bool events_is_refusal(const char *line);
