/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Starts atoll beside the caller: with a request (wire/link.h), and nothing else of the process that it is in. What is
 * started is no child of the caller.
 */

#include "base/buf.h"
#include "client/api/context.h"

struct spawn_request {
	const char *name, *id;   /* argv; id may be NULL */
	struct buf frame;        /* LINK_START, begun by spawn_request_init() */
	int fds[8];              /* borrowed: LINK_FDS_MAX */
	size_t fd_count;
	/* Says the first words on this end before anybody can be at the other; NULL: none. 0, or negative. */
	int (*greet)(int socket_fd, const struct atoll_context *context);
};

/*
 * Begins its frame with the places of the context; the caller adds fields, and fds that stay its own. name is borrowed.
 * An error of the frame sticks until spawn_request_start(). done frees the frame alone, started or not.
 */
void spawn_request_init(struct spawn_request *request, const struct atoll_context *context, const char *name);
void spawn_request_done(struct spawn_request *request);

/*
 * Completes the frame and starts the program. *ret_fd: this end of the socket, owned, not blocking, never below 3.
 * 0, or ATOLL_E_*.
 */
int spawn_request_start(struct spawn_request *request, const struct atoll_context *context, int *ret_fd,
			struct atoll_error *error) MUST_USE;
