/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The streams of a command that outlives its client: its output is always read, goes to whoever is attached, and stands
 * in a ring of bounded size while nobody is; its input stays open until it is closed on purpose. Nothing here waits for
 * a reader, and no reader waits for another. Run by atoll-box.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "supervise/ring.h"

struct lasting;
struct loop;

enum {
	LASTING_CLIENTS_MAX = 8,        /* attached to one command at a time */
	LASTING_RING_SIZE = 256 << 10,  /* of one stream */
	LASTING_BUDGET_SIZE = 4 << 20,  /* of all streams of a sandbox */
};

/* What the streams are of: borrowed, as long as they live. */
struct lasting_owner {
	struct loop *loop;
	struct ring_budget *budget;
	int (*on_output)(void *context, uint64_t n); /* of struct relay: on_bytes */
	void *context;
};

/*
 * Makes pipes for the streams of a mask (bits 1 << STDIO_…); inside[i] is the sandbox's end, owned by the caller. With
 * none of them there is a terminal: lasting_take_master(). 0 or -errno.
 */
int lasting_new(struct lasting **ret, const struct lasting_owner *owner, unsigned which, int inside[3]) MUST_USE;
void lasting_free(struct lasting *lasting);

/* The pty's master (taken, also on failure). */
int lasting_take_master(struct lasting *lasting, int master_fd) MUST_USE;

/*
 * Attaches a client: of fds (taken; FD_NONE: none) the first is what it writes to, the next two what it reads from; of
 * a terminal the first is a stream socket for both. fresh: what is in the ring stays there for another. -EAGAIN: there
 * are LASTING_CLIENTS_MAX; -EINVAL: fds are of another kind.
 */
int lasting_attach(struct lasting *lasting, int fds[3], bool is_fresh) MUST_USE;

/* The same with ends that are made here: the client's in ret_fds (owned by the caller, FD_NONE: no such stream). */
int lasting_attach_new(struct lasting *lasting, bool has_input, bool is_fresh, int ret_fds[3]) MUST_USE;

/* Its input ends once what clients have written so far is with it. -EINVAL: it is a terminal. */
int lasting_close_input(struct lasting *lasting) MUST_USE;

/* Of its terminal. -ENOTTY: it has none. */
int lasting_resize(struct lasting *lasting, uint16_t rows, uint16_t columns) MUST_USE;

/* Once a turn of the loop while lasting_close_input() is not done. */
void lasting_check(struct lasting *lasting);

/* The command has ended: no more input, and of its output what was written until now. Processes that it left keep
 * nothing open here. */
void lasting_end(struct lasting *lasting);

/* Whether all that it wrote until now is in the ring, or with the fastest of the clients. */
bool lasting_is_settled(struct lasting *lasting);

/* Whether nothing is left to come or to deliver to those who are attached. */
bool lasting_is_drained(const struct lasting *lasting);

struct lasting_state {
	bool is_terminal, has_ring;
	uint64_t dropped;        /* bytes that some client, or all of them, will never see */
	unsigned attached;
};

/* What those who did not start the command are told of its streams. */
void lasting_look(const struct lasting *lasting, struct lasting_state *ret_state);

/* So many bytes of input so far. */
uint64_t lasting_moved(const struct lasting *lasting);
