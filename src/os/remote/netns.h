/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Sockets in the network namespace of another process: setns(2). A socket belongs to the namespace that it was made in,
 * whoever uses it afterwards.
 */

#include "base/cleanup.h"
#include "os/fd.h"
#include "os/pidref.h"

/*
 * Non-blocking TCP sockets (not bound, not connected, TCP_NODELAY) in the namespaces of process, made by a child that
 * enters its user and network namespace and ends: the caller stays where it is. That child is what they cost, so that
 * whoever needs one after the other asks for several. family: AF_INET or AF_INET6. For whoever made that user
 * namespace, or root. count is at most FD_PASS_MAX. 0 and all of them in fds (owned), or none and -errno: -ESRCH: the
 * process has ended.
 */
int netns_sockets(const struct pidref *process, int family, int *fds, size_t count) MUST_USE;

/*
 * Sockets that are bound to these ports of 127.0.0.1 and, where there is one, ::1 in the namespaces of process, and do
 * not listen: nobody else can have the ports there. How many they are, all in fds (owned); none and -errno:
 * -EADDRINUSE: one of the ports is taken. At most FD_PASS_MAX / 2 ports.
 */
int netns_hold_ports(const struct pidref *process, const uint16_t *ports, size_t count, int fds[FD_PASS_MAX]) MUST_USE;
