/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Connections to published ports: accepted on the host's loopback, and led to a port inside through a socket that the
 * box had made there. They count against the session's limits of bytes. Runs in atoll-egress.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct gate;
struct publishing;

/* No port is published yet. gate is borrowed by all that follows. */
void publishing_init(struct publishing *publishing, struct gate *gate);

/* Takes fd, which listens. -EBADMSG: there is one of this number, or it is NET_PUBLISH_MAX or more; -ENOMEM. */
int publishing_add(struct gate *gate, uint32_t index, uint16_t port, int fd) MUST_USE;

/* The box's answer: a socket of the inside (taken), or FD_NONE: it refuses. */
void publishing_go(struct gate *gate, uint32_t id, int inside_fd);
