/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Makes a connect(2) on a caller's behalf, never for longer than a moment; why it is not the caller's kernel call that
 * does it stands in connect.c. It records nothing. Runs in atoll-box.
 */

#include <linux/seccomp.h>
#include <sys/socket.h>
#include <time.h>

#include "watch/call/events.h"

/* An address as it was copied, once. */
struct connect_address {
	union {
		struct sockaddr any;
		struct sockaddr_storage storage;
	};
	socklen_t size;
};

struct connect_call {
	uint64_t id;                 /* of the notification */
	pid_t pid;                   /* the calling thread */
	int fd;                      /* its number there */
	bool is_gated;               /* a stream goes to the gate's door */
	bool is_again;               /* of a caller that waits since an earlier try */
	bool is_held;                /* of one that waits for the gate, before the first */
	struct connect_address address;
};

enum connect_outcome {
	CONNECT_DONE,                /* errnum is the caller's; 0: connected */
	CONNECT_REFUSED,             /* by the wall around the host's sockets; errnum as well */
	CONNECT_WAITS,               /* the caller would block; try again */
};

struct connect_result {
	enum connect_outcome outcome;
	int errnum;
	uint64_t timeout_ns;         /* CONNECT_WAITS: the socket's SO_SNDTIMEO; 0: none */
	int timeout_errnum;          /* what the caller gets once that is over */
	struct connect_address source; /* of a stream that was led to the gate's door by this call; size 0: none was */
};

struct connector {
	int listener_fd;             /* borrowed, as are the options */
	const struct watch_options *options;
	timer_t ticks;               /* interrupts what blocks */
};

/* Takes SIGRTMIN for itself: its handler, and that it is not blocked. */
int connector_init(struct connector *connector, int listener_fd, const struct watch_options *options) MUST_USE;
void connector_done(struct connector *connector);

/*
 * A pidfd of a thread that made a call, for its descriptors; before Linux 6.9 of its process, whose descriptors it
 * nearly always shares. Owned. -1 with errno, as pidfd_open(2).
 */
int connect_open_caller(pid_t pid) MUST_USE;

/*
 * Tries once. A caller that is gone is CONNECT_DONE (nobody hears the errnum). Needs what pidfd_getfd(2) asks for, and
 * where the sandbox has ids of its own CAP_SETUID and CAP_SETGID.
 */
void connect_try(const struct connector *connector, const struct connect_call *call,
		 struct connect_result *ret_result);
