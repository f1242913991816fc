/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Ports of the sandbox that loopback ports of the host lead to (network.publish, --publish). The host's side is bound
 * before the sandbox lives; the gate accepts and relays, and gets for each connection a socket that was made inside.
 * Run by atoll-box.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/policy.h"
#include "supervise/loop.h"

struct net_gate;
struct gate_arrived;
struct json;
struct watch_network;

#define PUBLISH_FILE "published"

struct published {
	struct publish_rule rule;      /* host_port as it was bound */
	int fd;                        /* listens; owned until the gate has it */
	int claim_fd;                  /* that the port is ours (host-ports.h); owned, FD_NONE: another has it */
	struct loop_source source;
	uint64_t connections;
};

enum { PUBLISH_SPARES_MAX = 8 };

struct publish {
	struct published ports[NET_PUBLISH_MAX];
	size_t count;
	int spares[PUBLISH_SPARES_MAX];    /* sockets of the inside for who comes next; owned */
	size_t spare_count;
	int (*ready)(void *context, uint32_t events); /* somebody came before the gate runs */
	bool has_said_taken;               /* that a port on demand cannot be had */
};

/*
 * Binds what policy and request ask for, so that a run whose port is taken fails before it begins; and sees whether
 * the host's own ports that are to be reached can be (host-ports.h).
 */
int publish_open(struct net_gate *gate) MUST_USE;

/* Watches the ports until the gate has them; somebody who comes wakes it by ready(context). */
int publish_listen(struct net_gate *gate, int (*ready)(void *context, uint32_t events)) MUST_USE;

/*
 * Writes down which ports are open: in the log, in PUBLISH_FILE of the session ("127.0.0.1:18080:8080\n" …, for ps),
 * and on stderr. Negative: the log failed.
 */
int publish_announce(struct net_gate *gate) MUST_USE;

/*
 * Something inside is about to listen: opens what the policy publishes on demand for that port, as publish_open() and
 * publish_announce(). One that is taken is said, once. Negative: the log failed.
 */
int publish_on_listen(struct net_gate *gate, const struct watch_network *event) MUST_USE;

/* Gives them to the gate. */
void publish_hand_over(struct net_gate *gate);

/* Somebody connected: 1 with a socket of the inside in *ret_fd (owned); 0: refused. Negative: the log failed. */
int publish_judge(struct net_gate *gate, const struct gate_arrived *arrived, int *ret_fd) MUST_USE;

/* The array "published" of the report: each port with its address on the host and how often it was connected to. */
void publish_to_json(const struct publish *publish, struct json *json);

/* Nobody of the host can connect any more: closes what the gate was not given, and the spare sockets inside. */
void publish_close(struct net_gate *gate);
