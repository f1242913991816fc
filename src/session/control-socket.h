/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The way to a live box from outside: its control socket, and that it is the right one that answers. What is said then
 * is wire/control.h. Run by atoll and atoll-stage.
 */

#include "base/cleanup.h"
#include "base/err.h"

/*
 * Connects to the box of a session whose socket is in this run-time directory. The fd, or -errno: as below.
 */
int control_socket_connect_in(const char *runtime_dir, const char *session) MUST_USE;

/*
 * The same in the user's own. The fd, or -errno with *err: -ENOENT, -ECONNREFUSED where nobody listens, -EPERM
 * where the socket belongs to somebody else.
 */
int control_socket_connect(const char *session, struct err *err) MUST_USE;
