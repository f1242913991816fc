/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A handle of one sandbox: its socket to the box (wire/link.h), what else is read for it, and the events that a request
 * left behind while it waited. One thread at a time.
 */

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "client/api/context.h"
#include "os/clock.h"
#include "wire/link.h"

struct job;

/* What the caller waits for. */
struct pending {
	struct pending *next;
	uint64_t ticket;
	struct job *job;         /* owned; NULL: the box answers */
	struct streams *streams; /* owned; of LINK_RUN: NULL: none */
};

/* Since when a box knows LINK_OWN_COMMANDS. */
enum { OWN_COMMANDS_PROTOCOL = 2 };

/* The number of the command that a sandbox is started with. */
enum { MAIN_COMMAND = 1 };

/* The streams of a command on this side. */
struct streams {
	struct streams *next;
	uint64_t command;        /* its number */
	int fds[3];              /* owned: our ends */
	bool is_captured, is_pty;
	int terminal_fd;         /* owned: to change its size */
	int reserved[2];         /* owned: keep the place of a terminal that has not come yet, and of terminal_fd */
};

struct queued {
	struct queued *next;
	struct atoll_record *event;
	bool has_credit;         /* to be given back when it is read */
};

/* Why a box does not speak with a handle. */
struct refusal {
	int code;
	struct err err;
};

/* What a parked one was built under. */
struct parked {
	uint8_t hash[32];
	bool has_hash;
	uint64_t device, inode;  /* of the policy's memory, where it has no hash */
	bool is_ready;           /* PARKED has come */
};

struct atoll_sandbox {
	struct atoll_context *context;
	char id[SESSION_ID_SIZE];
	int epoll_fd, socket_fd; /* socket: FD_NONE once it is over */
	int wake_fd;             /* owned: an eventfd, always readable: in epoll_fd, which is so by it while is_awake */
	bool is_awake;           /* the queue is not empty */
	uint32_t protocol;       /* that is spoken; 0: not known yet */
	bool is_found;           /* it was there before the handle */
	struct refusal *refusal; /* owned; NULL: none: it lives, and does not speak with this handle */
	bool is_over;            /* END was queued */
	bool has_failed;
	struct parked *parked;   /* owned; NULL: it is a sandbox */
	uint64_t next_ticket;
	uint32_t credit;         /* to be given back */
	struct queued *first, **last;
	struct pending *pending;
	struct streams *streams;
};

/* What a waiting request gets; result is owned. */
struct answer {
	uint64_t ticket;         /* 0: none is waited for */
	bool is_there;
	int code;
	struct err err;
	struct atoll_record *result;
};

/* A handle that has this socket (taken; FD_NONE: it has ended). 0, or -errno: no memory or no descriptors. */
int sandbox_new(struct atoll_context *context, const char *id, int socket_fd, struct atoll_sandbox **ret) MUST_USE;

/* Whether it may be used: as context_check(). */
int sandbox_check(const struct atoll_sandbox *sandbox, struct atoll_error *error) MUST_USE;

/*
 * Says on a socket to a box which protocol is spoken and what shall be heard. A short run is over before its starter
 * does anything more, so this stands in the socket before the box is started. 0 (also where it has ended), or -errno.
 */
int sandbox_greet(int socket_fd, const struct atoll_context *context) MUST_USE;

/* The same as fields of a message that a box gets before it can be greeted. */
void sandbox_put_greeting(struct buf *out, const struct atoll_context *context);

/* Queues an event (taken; NULL: -ENOMEM). */
int sandbox_queue(struct atoll_sandbox *sandbox, struct atoll_record *event, bool has_credit) MUST_USE;

/* The first one, which there must be; the caller's. *ret_has_credit: as it was queued. */
struct atoll_record *sandbox_take_event(struct atoll_sandbox *sandbox, bool *ret_has_credit);

/* An event of this type and number, or NULL: no memory. */
struct atoll_record *event_new(enum link_event type, uint64_t number) MUST_USE;

/* Whoever polls sees that there is something, though no message is, or no longer: after events were queued or taken. */
void sandbox_wake(struct atoll_sandbox *sandbox);

/* Until then only what comes from outside is seen. */
void sandbox_doze(struct atoll_sandbox *sandbox);

/* Steps until the answer is there. 0, or its code with *error; ATOLL_E_TIMEOUT. *ret (or NULL) is the result. */
int sandbox_await(struct atoll_sandbox *sandbox, uint64_t ticket, struct atoll_record **ret,
		  struct atoll_error *error) MUST_USE;

/* Sends one message. 0, or ATOLL_E_*; AGAIN: its socket is full; BUSY: it is parked. */
int sandbox_send(struct atoll_sandbox *sandbox, const struct buf *out, const int *fds, size_t fd_count,
		 struct atoll_error *error) MUST_USE;

/* 0: the box speaks this protocol. ATOLL_E_PROTOCOL, _GONE, _TIMEOUT; waits where it has not said so yet. */
int sandbox_need(struct atoll_sandbox *sandbox, uint32_t protocol, struct atoll_error *error) MUST_USE;

/* Why nobody answers any more: ATOLL_E_GONE, or what it was refused for. */
int sandbox_set_gone(const struct atoll_sandbox *sandbox, struct atoll_error *error);

/* Its code, and *err, where nobody answers any more: for events. */
int sandbox_gone(const struct atoll_sandbox *sandbox, struct err *err);

/* Begins a request: its ticket is in out. */
uint64_t sandbox_begin(struct atoll_sandbox *sandbox, struct buf *out, enum link_message type);

/*
 * streams, job: NULL where there are none. With a job nothing is sent (out NULL).
 */
struct request {
	uint64_t ticket;
	struct buf *out;
	const int *fds;
	size_t fd_count;
	struct streams *streams;
	struct job *job;
};
/*
 * Sends it, and waits for the reply where ticket is NULL, at most for the context's timeout_ms; else *ticket is set and
 * the reply comes as an event. out is done with, streams and job are taken, in any case; fds are borrowed. 0, or
 * ATOLL_E_* with *error. *result: NULL, or the caller's to free.
 */
int sandbox_request(struct atoll_sandbox *sandbox, struct request *request, uint64_t *ticket,
		    struct atoll_record **result, struct atoll_error *error) MUST_USE;

/* Watches a descriptor for it: 0 or -errno; and no longer, before it is closed (FD_NONE: nothing). */
int sandbox_watch(struct atoll_sandbox *sandbox, int fd) MUST_USE;
void sandbox_unwatch(struct atoll_sandbox *sandbox, int fd);

/* No longer waited for: the caller's. NULL: it was given up. */
struct pending *sandbox_take_pending(struct atoll_sandbox *sandbox, uint64_t ticket);
void pending_free(struct pending *pending);

/*
 * A terminal comes with an event, when it is too late to say that there is no room for it: its places are taken when it
 * is asked for, -EMFILE, and given back before a message is received.
 */
int streams_reserve(struct streams *streams) MUST_USE;
void streams_release(struct streams *streams);

/* Closes those of 0, 1, 2 and the terminal that are still open, and frees it. NULL is fine. */
void streams_free(struct streams *streams);
