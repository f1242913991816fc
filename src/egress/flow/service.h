/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the services of a gate have in common: how they are started, rested and ended (a table in gate.c, so that none
 * of them knows the others), how a connection is accepted, and when the gate is done. Runs in atoll-egress.
 */

#include "egress/flow/gate-state.h"

struct sockaddr_storage;

/* Each but end may be NULL. */
struct gate_service {
	int (*start)(struct gate *gate);  /* at GATE_START, once gate->sockets are there; negative ends the gate */
	void (*watch)(struct gate *gate, bool watches); /* whether who connects is accepted */
	void (*stop)(struct gate *gate);  /* nobody is left inside: ends each thing once what was said is handed on */
	void (*end)(struct gate *gate);   /* ends all of it now; also after a failed start, and twice */
};

extern const struct gate_service dns_service, door_service, flow_service, publish_service;

/*
 * As accept4(2), of a listening socket of ours; FD_NONE: nobody waits, or there is no descriptor left. Then no
 * listening socket is watched for a moment.
 */
int gate_accept(struct gate *gate, int listening_fd, struct sockaddr_storage *ret_from);

/* Prepares that moment. -EINVAL: no timer can be made. */
int gate_accept_init(struct gate *gate) MUST_USE;

/* Whether a name with this verdict has an address, and a connection is worth a question to the box. */
bool gate_may_open(const struct gate *gate, enum verdict verdict);

/* After a connection has ended: ends the loop when nobody is left inside and it was the last. */
void gate_check_stopped(struct gate *gate);
