/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * rtnetlink(7): the few requests that a new network namespace needs. Async-signal-safe.
 * Used by the child of jail/ before it executes init.
 */

#include <stdint.h>

#include "base/cleanup.h"

/* A socket (owned) that asks the current network namespace, wherever its caller goes; or -errno. */
int netlink_open(void) MUST_USE;

/*
 * What else `lo` of the socket's network namespace answers for; needs CAP_NET_ADMIN there. The address (4 or 16 bytes)
 * has global scope, as programs ask for (AI_ADDRCONFIG), and with it every address of its first bits is local. -EACCES,
 * -EOPNOTSUPP and their like where the kernel runs without IPv6.
 */
int netlink_add_local4(int fd, const uint8_t address[4], unsigned bits) MUST_USE;
int netlink_add_local6(int fd, const uint8_t address[16], unsigned bits) MUST_USE;

/* Brings up `lo` of the socket's network namespace; its addresses come by themselves. Needs CAP_NET_ADMIN there. */
int netlink_loopback_up(int fd) MUST_USE;
