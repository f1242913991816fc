/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The front (atoll-front) as atolld sees it: a child with one socket, started again when it ends, but not more often
 * than it may. What it says is read by the table of wire/service.h; what does not fit ends it. Sandboxes know nothing
 * of it. Runs in atolld.
 */

#include "base/cleanup.h"
#include "base/err.h"
#include "os/pidref.h"
#include "supervise/loop.h"
#include "wire/service.h"

enum { FRONT_LISTEN_MAX = 2, FRONT_QUEUE_MAX = 4 << 20 };

struct front_frame;

/* What a front is told at its start. All borrowed. */
struct front_setup {
	const char *program;             /* its path */
	const char *domain;
	const char *const *hosts;
	int listen_fds[FRONT_LISTEN_MAX];
	int certificate_fd, private_key_fd;   /* FD_NONE: no TLS */
	uint32_t connections_max;
	uint64_t body_max;
};

struct front {
	const struct front_setup *setup;
	struct loop *loop;               /* borrowed */
	struct pidref process;
	struct loop_source socket;
	bool is_ready;
	uint64_t generation;             /* how many there were: a reply is for the one that asked */
	struct front_frame *first, **last;   /* owned: what waits to be sent */
	size_t queued_bytes;
	struct buf scratch;              /* what is received */
	uint64_t starts_ns[8];           /* the last ones: a ring */
	size_t start_count;
	/* A request, whose bytes (owned) and message (owned) the receiver takes. Negative: out of memory. */
	int (*request)(void *context, uint8_t *bytes, struct service_message *message);
	/* It is ready to be asked, or has ended. */
	void (*changed)(void *context, bool is_ready);
	void *context;
};

/* Sets the fields that the caller has not. */
void front_init(struct front *front, struct loop *loop, const struct front_setup *setup);

/* Ends the process, and frees. */
void front_done(struct front *front);

/* Starts one. Negative with *err where it cannot be. */
int front_start(struct front *front, struct err *err) MUST_USE;

/* When the next one may be started: 0: at once; else CLOCK_MONOTONIC in ns. UINT64_MAX: one runs. */
uint64_t front_next_start_ns(const struct front *front);

/*
 * Sends a frame, or has it wait; fds (at most FRAME_FD_MAX) are closed in any case. Nothing happens where none runs. A
 * front that does not read for so long that FRONT_QUEUE_MAX waits is ended.
 */
void front_send(struct front *front, const struct buf *out, int *fds, size_t fd_count);
