/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a record of the network says: of names that were looked up, of connections and of requests. It decides nothing
 * and counts nothing; log.h does. Run by atoll-box.
 */

#include <stdint.h>
#include <sys/types.h>

#include "audit/writer.h"
#include "base/cleanup.h"
#include "policy/decide.h"

struct gate_closed;
struct gate_request;
struct json;
struct run;

/* Beside subject and verdict; what is 0 or NULL is left out. All of it is borrowed. */
struct net_detail {
	uint32_t port, type, id;
	const char *detail_key, *detail;
	const char *published;           /* the host's side of a connection from outside */
	const struct gate_closed *closed;
	const struct gate_request *request;
	const struct action *reading;    /* of its path, by which it was decided */
};

/* The "detail" of such a record; context: a struct net_detail. As audit_event.write_detail. */
void net_detail_to_json(struct json *json, const void *context);

/* decision NULL: it says what happened, and nothing was decided. pid 0: not known. Negative: the log failed. */
int gate_record(struct run *run, enum audit_type type, const struct action *action, const struct decision *decision,
		pid_t pid, const struct net_detail *detail) MUST_USE;
