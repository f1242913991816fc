/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Sockets in the network namespace of another process: setns(2). A socket belongs to the namespace that it was made in,
 * whoever uses it afterwards.
 */

#include "base/cleanup.h"
#include "os/pidref.h"

/*
 * A non-blocking TCP socket (not bound, not connected) in the namespaces of process, made by a child that enters its
 * user and network namespace and ends: the caller stays where it is. family: AF_INET or AF_INET6. For whoever made
 * that user namespace, or root. The fd (owned), or -errno: -ESRCH: the process has ended.
 */
int netns_socket(const struct pidref *process, int family) MUST_USE;
