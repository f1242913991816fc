/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The front of the service: speaks HTTP with clients, and asks the launcher for everything. It holds no key, no
 * database and no sandbox; it moves bytes between sockets and descriptors that it was given. Run by atoll-front.
 */

#include "base/cleanup.h"
#include "base/err.h"

struct front_extension;

/*
 * Takes SERVICE_SETUP from the socket (borrowed, wire/service.h), confines itself, tells SERVICE_READY and serves until
 * the launcher closes. extension: what the program adds (extension.h), or NULL. 0: it has; negative with *err: the
 * setup, a wall or the launcher failed.
 */
int front_run(int launcher_fd, const struct front_extension *extension, struct err *err) MUST_USE;
