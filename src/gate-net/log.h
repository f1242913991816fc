/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the network gate tells, as records of the action log and as refusals. Each decision is made here again, from
 * the policy and not from the gate's word. Run by atoll-box.
 */

#include "policy/policy.h"
#include "wire/gate.h"

struct net_gate;
struct queue_outcome;
struct decision;
struct watch_network;

/* Negative throughout: the log failed. */
int gate_log_lookup(struct net_gate *gate, const struct gate_lookup *lookup) MUST_USE;

/* 1: it may go out, and is written down; 0: it may not, and nothing is. */
int gate_log_granted(struct net_gate *gate, const struct gate_open *open) MUST_USE;

enum { GATE_LOG_WAITS = 2 };

/* A connection that the gate asks about. 1: let out and written down; 0: refused; GATE_LOG_WAITS: people are asked. */
int gate_log_open(struct net_gate *gate, const struct gate_open *open) MUST_USE;

/* A connection that waited for a person: writes it down, and tells the gate. */
int gate_log_answered(struct net_gate *gate, const struct gate_open *open,
		      const struct queue_outcome *outcome) MUST_USE;

/*
 * What the box says of where a connection leads that was let out by its name: as gate_log_open(), but that nothing more
 * is written down where it may go on. -EBADMSG: the gate breaks the rules.
 */
int gate_log_resolved(struct net_gate *gate, const struct gate_resolved *resolved) MUST_USE;

/* One of those that waited for a person: tells the gate. */
int gate_log_resolved_answered(struct net_gate *gate, const struct gate_resolved *resolved,
			       const struct queue_outcome *outcome) MUST_USE;
int gate_log_refused(struct net_gate *gate, const struct gate_refused *refused) MUST_USE;
int gate_log_closed(struct net_gate *gate, const struct gate_closed *closed) MUST_USE;

/* A request that is asked about: it is answered now or later. -EBADMSG: the gate breaks the rules. */
int gate_log_ask(struct net_gate *gate, const struct gate_ask *ask) MUST_USE;

/* An answer to it, which the policy in force overrides where it denies by now. */
void gate_log_judge_again(const struct net_gate *gate, const struct gate_ask *ask, struct decision *answer);

/* A request that is over: refused ones are denials. */
int gate_log_request(struct net_gate *gate, const struct gate_request *request) MUST_USE;

/* Somebody of the host connected to a published port. */
int gate_log_arrived(struct net_gate *gate, const struct gate_arrived *arrived,
		     const struct publish_rule *rule) MUST_USE;

/* A connect to an address that is not one of ours: 0 where a cidr rule allows it, else an errno, and it is refused. */
int gate_log_address(struct net_gate *gate, const struct watch_network *event) MUST_USE;

/* That there is no network any more. */
int gate_log_failure(struct net_gate *gate) MUST_USE;
