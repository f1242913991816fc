/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The frames of the gate to its box: built in one buffer and sent at once, or queued and sent with others. Sending may
 * block: then the log cannot follow, and neither may we. Hears nothing (gate.c does). Runs in atoll-egress.
 */

#include <event2/event.h>
#include <event2/event_struct.h>

#include "base/err.h"
#include "wire/gate.h"

enum { BOX_LINK_QUEUE_MAX = 16 };

struct box_link {
	int fd;                        /* borrowed */
	struct event_base *base;       /* borrowed; its loop ends when something could not be sent */
	int error;                     /* negative: why */
	struct buf out;                /* to build a frame in for box_link_send() */
	struct buf queued[BOX_LINK_QUEUE_MAX];
	size_t queued_count;
	struct buf requests;           /* one more frame of the queue: all that is told of requests; empty: nothing */
	struct event queue_timer;
};

/* Borrows fd, a socket of packets, until box_link_done(). Nothing can be queued before box_link_start(). */
void box_link_init(struct box_link *link, int fd);
/* Borrows base, whose loop sends what is queued. -EINVAL: no timer can be made. */
int box_link_start(struct box_link *link, struct event_base *base) MUST_USE;
/* Frees the buffers. What is queued is lost: box_link_flush() sends it. */
void box_link_done(struct box_link *link);

/*
 * Sends what is queued, then the frame in link->out; built is what building it came to. Where that is negative or
 * sending fails, link->error is set and the loop ends.
 */
void box_link_send(struct box_link *link, int built);

/* The same of a frame that is its type alone. */
void box_link_send_plain(struct box_link *link, uint16_t type);

/*
 * For what waits for nobody's answer: the buffer to build a frame in (borrowed until the next call), and that it is
 * built, as above. It is sent within 10 ms with what else there is, and before anything that is sent at once: one
 * wake-up of the box for many.
 */
struct buf *box_link_queue(struct box_link *link);
void box_link_queued(struct box_link *link, int built);

/* The same for a request that is over: in one frame with others, for a frame costs as much as the rest of it. */
void box_link_queue_request(struct box_link *link, const struct gate_request *request);

/* Sends what is queued now. */
void box_link_flush(struct box_link *link);
