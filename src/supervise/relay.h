/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Bytes from one fd to another without ever blocking the supervisor: between the sandbox's pipes and the
 * user's files, pipes, terminals and sockets. Counts what passes. The receiver that closes first ends the
 * relay, so that a writer inside gets its SIGPIPE as it would without atoll.
 */

#include <stdbool.h>
#include <stdint.h>

#include "supervise/loop.h"

enum { RELAY_CHUNK = 64 << 10 };

struct relay {
	struct loop *loop;
	int in, out; /* owned */
	struct loop_source in_source, out_source;
	bool is_open, is_held;
	bool out_was_added; /* when it was held */
	bool can_splice;    /* until the kernel says that these two cannot */
	bool out_is_shared; /* out's description belongs to others: it may block, so small writes after poll
			       only */
	bool out_is_own;    /* set before relay_open(): out's description is nobody else's */
	bool in_is_shared;           /* set before relay_open(): in must not be made non-blocking */
	bool in_is_file;    /* epoll does not know it: read whenever out has room */
	bool in_is_socket;
	bool out_is_file; /* epoll does not know it: always writable */
	uint8_t *pending; /* RELAY_CHUNK bytes, made on first use */
	uint32_t pending_at, pending_size;
	uint64_t moved_bytes;
	int lost_errno; /* out took no more, and not since its reader had left: bytes are lost; outlives the end */
	/* Told of n more bytes; 1: no more than these may pass, negative ends the sandbox. NULL: not asked. */
	int (*on_bytes)(void *context, uint64_t n);
	/* Asked before in is read; false: not now, and the relay was held by whoever says so. NULL: always. */
	bool (*may_read)(void *context);
	void (*on_close)(void *context);
	void *context;
};

/*
 * Takes in and out (closed also on failure). in is made non-blocking and must be an own description;
 * out may be anybody's: it is reopened where that is possible and never left non-blocking.
 */
int relay_open(struct relay *relay, struct loop *loop, int in, int out) MUST_USE;

/* Moves nothing until it is released: what comes meanwhile waits in its pipe. One that is closed stays so. */
void relay_hold(struct relay *relay);

/* Goes on where relay_hold() stopped. Negative errno of the loop. */
int relay_release(struct relay *relay) MUST_USE;

/* Whether what was delivered has been taken: the pipe that leads out is empty, or it is no pipe. */
bool relay_is_taken(const struct relay *relay);

/* Stops and closes both ends; on_close is not called. */
void relay_close(struct relay *relay);

/* Moves what can be moved now without waiting, up to the end of input: for what is left after the last writer
 * died. */
int relay_drain(struct relay *relay) MUST_USE;

/* An own non-blocking description of what fd refers to, or -errno: proc(5), /proc/PID/fd. */
int relay_reopen(int fd, int flags) MUST_USE;
