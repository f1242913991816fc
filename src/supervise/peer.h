/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The life of a companion process of a box: started, greeted, heard, watched, timed out and ended by one state machine
 * for all of them. Who uses one has what it is asked and what its answers mean. What breaks within a judgement is
 * concluded in the next turn of the loop. How the process itself is made is peer-process.h. Run by atoll-box.
 *
 * No peers are the processes that this loop does not talk to:
 * - before there is a loop atoll-policy (client/compiled.h), atoll-secret (client/secrets.h) and the atoll-judge of
 *   --narrow (client/narrow.h) are started, asked once and waited for, since nothing can begin without their answer;
 * - the guardian (build/guardian.h) outlives the box, and hears of it by the end of a pipe alone;
 * - fuse-overlayfs (build/fuse.h) is the kernel's, not ours to talk to; it ends with its mount;
 * - children that act inside for one gate (gate-file/directory-move.h, build/enter-namespaces.h) are the box's own
 *   code behind fork(2), not a program with a protocol.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "supervise/loop.h"
#include "supervise/module.h"
#include "supervise/peer-process.h"

struct frame_rule;
struct run;

enum peer_state {
	PEER_IDLE,               /* no process; it can be started */
	PEER_STARTING,           /* it runs, and has not said yet that it serves */
	PEER_SERVING,
	PEER_BROKEN,             /* it runs, and cannot be used: the next turn of the loop concludes that */
	PEER_LEAVING,            /* its socket has ended, and it has time to tidy up */
	PEER_SPENT,              /* no process, and none is started any more */
	PEER_STATE_COUNT,
};

#define PEER_BIT(state) (1u << PEER_##state)

/* What was wrong with one that broke. */
enum peer_fault {
	PEER_HUNG_UP,
	PEER_NONSENSE,           /* what it said breaks the rules */
	PEER_DEAF,               /* it takes nothing */
	PEER_LATE,
};

/* What is particular of one companion. */
struct peer_kind {
	const char *program;     /* beside atoll-init */
	enum peer_user user;     /* 0: it stays as the box is */
	/* What it may say, by bits of PEER_BIT. A handler's -EPROTO and -EBADMSG are its fault, others the log's. */
	const struct frame_rule *rules;
	size_t rule_count;
	bool must_greet;         /* it is PEER_STARTING until peer_serves() */
	bool may_leave;          /* that it hangs up is no fall */
	unsigned leave_ms;       /* for what it does after its socket has ended */
	unsigned batch;          /* so many messages are heard in one turn of the loop; 0: one */
	/* After those. NULL: nothing is to be done. Negative: the log failed. */
	int (*heard)(void *context);
	/* It broke, and its process is gone: who waits at it is told. Negative: the log failed. */
	int (*broke)(void *context, enum peer_fault fault);
	/* The time that peer_expect() gave is over; NULL: it broke. Negative: the log failed. */
	int (*late)(void *context, uint64_t now_ns);
	/* Its socket takes more again after peer_wait_for_room(). Negative: the log failed. */
	int (*has_room)(void *context);
	/* After peer_dismiss(): its process is gone. NULL: nobody wants to know. */
	void (*left)(void *context);
};

struct peer {
	struct run *run;         /* borrowed, as kind and context */
	const struct peer_kind *kind;
	void *context;
	enum peer_state state;
	enum peer_fault fault;   /* PEER_BROKEN */
	int fd, far_fd, program_fd; /* owned; the last two between peer_prepare() and peer_start() */
	struct pidref process;   /* owned */
	struct loop_source source, exit_source;
	unsigned falls, falls_max; /* how often it broke, and after how many it is PEER_SPENT */
	int fatal;               /* peer_fail() */
	uint64_t deadline_ns;    /* peer_expect() */
	struct peer *next;       /* of those of the run that have a process or a deadline */
};

/* Nothing runs yet. */
void peer_init(struct peer *peer, struct run *run, const struct peer_kind *kind, unsigned falls_max, void *context);

/* Finds the program and makes the socket some time before peer_start(). peer->fd may be used. -errno. */
int peer_prepare(struct peer *peer) MUST_USE;

/*
 * Starts it: more (NULL: nothing) has its arguments, environment and descriptors, and what else kind does not say.
 * Nothing is heard of it before peer_listen(). -ESHUTDOWN: it is spent; another negative: nothing runs, and it fell.
 */
int peer_start(struct peer *peer, const struct peer_spec *more) MUST_USE;

/* From here on it is heard. Where that fails it is ended, and fell. */
int peer_listen(struct peer *peer) MUST_USE;

/* Both, with the first message, which is in the run's out (r: of making it). */
int peer_greet(struct peer *peer, int r, const int *fds, size_t fd_count) MUST_USE;

/*
 * Sends what is in the run's out. -EAGAIN: its socket is full; -EMSGSIZE, -ENOBUFS: the message is too long; another
 * negative: it breaks.
 */
int peer_send(struct peer *peer, const int *fds, size_t fd_count) MUST_USE;

/* Has kind->has_room called once. Negative: the loop cannot. */
int peer_wait_for_room(struct peer *peer) MUST_USE;

/* PEER_STARTING is over: what kind->must_greet waits for has come. */
void peer_serves(struct peer *peer);

/* Whether it runs and can be used. */
bool peer_is_there(const struct peer *peer);

/* When it is late (CLOCK_MONOTONIC), also without a process; UINT64_MAX: never. Said again for the next time. */
void peer_expect(struct peer *peer, uint64_t deadline_ns);

/* It cannot be used any more; concluded in the next turn of the loop. The first fault stays. */
void peer_break(struct peer *peer, enum peer_fault fault);

/* For handlers: the log failed, whatever r says elsewhere. Returns r. */
int peer_fail(struct peer *peer, int r);

/* Hears one message now, outside the loop: 1; 0: there is none now, or it broke; negative: the log failed. */
int peer_hear(struct peer *peer) MUST_USE;

/* Ends its socket; it has leave_ms to go by itself, and kind->left is called then. */
void peer_dismiss(struct peer *peer);

/* Ends it, and waits for that: with leave_ms where waits, else at once. Nothing is called. It can be started again. */
void peer_close(struct peer *peer, bool waits);

/* As peer_close(), and none is started any more. */
void peer_retire(struct peer *peer, bool waits);

/* As peer_retire(), but its process goes by itself, when its socket ends. */
void peer_abandon(struct peer *peer);

/* Its state is a struct run: concludes what broke, and looks at the time. */
extern const struct module peers_module;
