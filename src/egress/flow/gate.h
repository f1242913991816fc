/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The network gate of one sandbox: gate.c hears the box and starts the services: the DNS server (dns-server.c), the
 * door, where connections come in (door.c), the connections themselves (flow.c) and published ports (publish.c). They
 * share gate-state.h and service.h, and none of them knows gate.c. Of one connection: it is accepted and found by its
 * note (door.c), judged and dialled (flow.c, dial.c), looked at for a server's name (handshake.c), then relayed as it
 * is (relay.c), or read (http/intercept.h) with the hooks of requests.c. Runs in atoll-egress.
 */

#include "base/cleanup.h"
#include "base/err.h"
#include "policy/policy.h"

/*
 * Serves one sandbox over the socket to its box until that ends; policy is borrowed. recording_fd (taken; FD_NONE:
 * none) is recorded to, or where it is opened for reading answered from. Confines the process first. 0 when the box
 * ended it, else negative.
 */
int gate_run(int box_fd, const struct policy *policy, int recording_fd, struct err *err) MUST_USE;
