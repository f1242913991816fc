/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Makes a connect(2) on a caller's behalf, in a process of its own and never for longer than a moment; why it is
 * not the caller's kernel call that does it stands in connect.c. It records nothing. Runs in atoll-box.
 */

#include <linux/seccomp.h>
#include <sys/socket.h>

#include "watch/watch.h"

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
};

/*
 * Tries once. A caller that is gone is CONNECT_DONE (nobody hears the errnum). Needs what pidfd_getfd(2) asks for, and
 * where the sandbox has ids of its own CAP_SETUID and CAP_SETGID.
 */
void connect_try(const struct connect_call *call, int listener_fd, const struct watch_options *options,
		 struct connect_result *ret_result);
