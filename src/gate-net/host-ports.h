/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Ports of the machine's loopback that the sandbox reaches at its own (network.host_ports, --host-port). connect(2) to
 * one is led to the gate's door like every other that goes out (watch/network.h), and the gate connects outside.
 * Inside a socket holds each port, so that no program there can answer in the machine's place, or be shadowed by it.
 *
 * None of the ports that atoll itself listens on can be reached so. A name in the abstract namespace of unix sockets
 * stands for each, for as long as a descriptor is open. Anybody on the machine sees it, whoever runs the sandbox, and
 * a process that dies leaves nothing behind. Whoever takes such a name without the port only keeps sandboxes from that
 * port. Run by atoll-box.
 */

#include <stddef.h>

#include "base/cleanup.h"
#include "os/fd.h"
#include "policy/policy.h"

struct gate_resolved;
struct net_gate;
struct watch_gate;

struct host_ports {
	int held[FD_PASS_MAX];         /* sockets that are bound inside; owned */
	size_t held_count;
};

/* Before the jail: that the ports can be led to at all. Negative with the run's err. */
int host_ports_check(struct net_gate *gate) MUST_USE;

/* Once the jail stands and before a program runs in it: binds them inside. Negative with the run's err. */
int host_ports_hold(struct net_gate *gate) MUST_USE;

/* Tells the supervisor which they are. */
void host_ports_fill_options(const struct net_gate *gate, struct watch_gate *options);

/* Closes the sockets that hold them inside; may be called again. */
void host_ports_done(struct net_gate *gate);

/*
 * Says that the port is one of ours. Before listen(2): whoever is connected to it then finds it claimed. A descriptor
 * to keep open (owned); or -errno, but for a name that somebody else holds: FD_NONE.
 */
int own_port_claim(uint16_t port, bool is_inet6) MUST_USE;

/* Whether anybody claims it, for either family; also where that cannot be found out. */
bool own_port_is_claimed(uint16_t port);
