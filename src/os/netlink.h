/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * rtnetlink(7): the few requests that a new network namespace needs. Async-signal-safe.
 * Used by the child of jail/ before it executes init.
 */

#include "base/cleanup.h"

/* Brings up `lo` of the current network namespace; its addresses come by themselves. Needs CAP_NET_ADMIN there. */
int netlink_loopback_up(void) MUST_USE;
