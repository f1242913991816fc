/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Moves bytes between two connected sockets with splice(2), both ways, with back pressure and half-closes, within
 * limits. It looks at nothing. Runs in atoll-egress.
 */

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "egress/limit/quota.h"

enum relay_way { RELAY_OUT, RELAY_IN, RELAY_WAY_COUNT };  /* from the sandbox; to it */

struct relay;

/* One direction. Its pipe is borrowed from a pool while there are bytes in it. */
struct relay_half {
	struct relay *relay;
	int from_fd, to_fd;
	struct event readable, writable, again;
	int pipe[2];
	size_t in_pipe;
	bool is_started, has_ended, is_closed;   /* ended: no more comes; closed: and all of it was delivered */
	uint64_t moved_bytes;
	uint64_t may_take;             /* bytes, until relay_allow() */
};

struct relay_options {
	int inside_fd, outside_fd;       /* sockets, non-blocking, borrowed */
	const struct quota_share *share; /* borrowed */
	/* Both halves are closed (errnum 0), one broke, or the bytes are used up (EDQUOT). The relay may be freed. */
	void (*on_end)(void *context, int errnum);
	/* All that the inside sent, and its end, were handed on. The relay may be freed. */
	void (*on_said)(void *context);
	void *context;
};

struct relay {
	struct relay_half halves[RELAY_WAY_COUNT];
	struct relay_options options;
};

/* Nothing moves before relay_start(). relay_done() must come before the sockets are closed. */
int relay_init(struct relay *relay, struct event_base *base, const struct relay_options *options) MUST_USE;
void relay_start(struct relay *relay, enum relay_way way);

/* The same, and moves what is there already. The relay may be gone afterwards. */
void relay_start_now(struct relay *relay, enum relay_way way);

/* It takes so many bytes from now on, and then neither more nor the end of the stream. UINT64_MAX (at first): all. */
void relay_allow(struct relay *relay, enum relay_way way, uint64_t bytes);

/* Whether it has taken, and delivered, all that it may. */
bool relay_is_at_bound(const struct relay *relay, enum relay_way way);
void relay_done(struct relay *relay);
