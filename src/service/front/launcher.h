/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Requests to the launcher, and what it says by itself. Sends never block: what the socket does not take waits here, up
 * to a bound. Run by atoll-front.
 */

#include "wire/service.h"

struct front;
struct launcher;

/* Called from the loop with what the launcher says by itself, checked by the table already. */
typedef void (*launcher_said)(struct front *front, const struct service_message *event);

/* fd: the socket (borrowed, made non-blocking). NULL: out of memory. */
struct launcher *launcher_new(struct front *front, int fd, launcher_said said) MUST_USE;
void launcher_free(struct launcher *launcher);

/* Called from the loop: once for each request that was sent. reply is the callee's to take descriptors from. */
typedef void (*launcher_replied)(void *context, struct service_message *reply);

/*
 * The frame of a new request, begun: put its values into it and send it. Only one is made at a time. *ret_ticket names
 * it. NULL: too many wait, or too much is unsent.
 */
struct buf *launcher_begin(struct launcher *launcher, enum service_operation operation, uint64_t *ret_ticket);

/*
 * Sends it. 0; -EBADMSG: a value cannot be (too long, a control character); -EMSGSIZE, -ENOMEM; the ticket is free
 * again then.
 */
int launcher_send(struct launcher *launcher, uint64_t ticket, launcher_replied replied, void *context) MUST_USE;

/* Nobody waits any more: the reply, when it comes, is dropped with its descriptors. ticket 0: nothing. */
void launcher_forget(struct launcher *launcher, uint64_t ticket);

/* Sends SERVICE_READY: the walls are up. 0 or a negative errno of the socket. */
int launcher_tell_ready(struct launcher *launcher) MUST_USE;

/* Adds its socket to the loop. 0 or a negative errno. */
int launcher_listen(struct launcher *launcher) MUST_USE;
