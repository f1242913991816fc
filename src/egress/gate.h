/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The state of the one gate of this process, shared by the files of egress/: gate.c speaks with the box, server.c
 * answers DNS, door.c takes connections, flow.c has the life of one. Runs in atoll-egress.
 */

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>

#include "base/err.h"
#include "egress/authority.h"
#include "egress/dial.h"
#include "egress/memory.h"
#include "egress/names.h"
#include "egress/publish.h"
#include "egress/quota.h"
#include "egress/secrets.h"
#include "egress/tape.h"
#include "policy/policy.h"
#include "wire/gate.h"

enum { GATE_FLOWS_MAX = 2048, GATE_ROUTES_MAX = 256, GATE_STRAYS_MAX = 64, GATE_TCP_QUERIES_MAX = 16,
       GATE_QUEUE_MAX = 16, GATE_WAITS_MAX = 128 };

struct exchange_record;
struct flow;
struct labels;
struct requests;
struct sockaddr_storage;
struct tcp_query;

/* A connection to the door of which it is not known yet where it was meant to go. */
struct stray {
	int fd;
	struct gate_address source;
	uint64_t until_ns;
};

/* Where a connection to the door was meant to go, as the box said; not taken yet. */
struct note {
	struct gate_route route;       /* without host: is_granted is for the host that it means */
	uint64_t until_ns;             /* 0: taken */
	uint64_t reused;               /* names_count_reused() when it came */
};

/* A request that waits for GATE_ANSWER. */
struct gate_wait {
	uint32_t id;                   /* 0: free */
	struct requests *owner;        /* of its connection */
	struct exchange_record *record;
};

struct gate {
	/* At the same place for good, with another content after a change: connections that are open borrow it. */
	struct policy now;
	const struct policy *policy;   /* now */
	struct event_base *base;
	struct dialer *dialer;
	struct names *names;
	struct quota *quota;
	struct memory_budget memory;
	struct labels *labels;
	uint64_t paused_until_ns;      /* GATE_PAUSE */
	bool asks;                     /* GATE_ASKING */
	struct gate_wait waits[GATE_WAITS_MAX]; /* requests that people are asked about */
	uint32_t last_asked;           /* of them */
	struct authority authority;    /* where requests are read */
	struct gate_secrets secrets;
	struct tape *tape;             /* NULL: nothing is recorded or replayed */
	int box_fd;
	struct buf out, scratch;
	struct buf queued[GATE_QUEUE_MAX];
	size_t queued_count;
	struct buf requests;           /* one more frame of the queue: all that is told of requests; empty: nothing */
	struct event queue_timer;
	struct event rest_timer;       /* until the listening sockets are watched again */
	struct event box_readable;
	unsigned state;                /* enum gate_state */
	int error;                     /* the loop ended because of this */
	const char *failure;           /* static: in words; NULL */

	int sockets[GATE_SOCKET_COUNT];
	struct event socket_events[GATE_SOCKET_COUNT];
	struct tcp_query *queries[GATE_TCP_QUERIES_MAX];

	struct note notes[GATE_ROUTES_MAX]; /* a ring */
	size_t next_note;
	struct stray strays[GATE_STRAYS_MAX];
	size_t stray_count;
	struct event stray_timer, quiet_timer;
	bool is_door_open, is_door_watched;
	bool has_routed;               /* a note came since quiet_timer was set */

	struct flow *flows[GATE_FLOWS_MAX];
	size_t flow_count, flows_max;
	struct publishing publishing;
	bool is_stopping;              /* nobody is left inside: what was said is handed on, then we end */
	struct event stop_timer;
};

/*
 * Serves one sandbox over the socket to its box until that ends; policy is borrowed. tape_fd (taken; FD_NONE: none) is
 * recorded to, or where it is opened for reading answered from. Confines the process first. 0 when the box ended it,
 * else negative.
 */
int gate_run(int box_fd, const struct policy *policy, int tape_fd, struct err *err) MUST_USE;

/* Whether a name with this verdict has an address, and a connection is worth a question to the box. */
bool gate_may_open(const struct gate *gate, enum verdict verdict);

/* Once nobody is left inside: ends the loop when all was handed on. */
void gate_check_stopped(struct gate *gate);

/* Sends what is in gate->out to the box; the loop ends where that fails. */
void gate_send(struct gate *gate, int built);

/*
 * For what waits for nobody's answer: the buffer to build it in, and that it is built. It is sent with what else there
 * is within GATE_QUEUE_MS, and before anything that is sent at once: one wake-up of the box for many.
 */
struct buf *gate_queue(struct gate *gate);
void gate_queued(struct gate *gate, int built);

/* The same for a request that is over: in one frame with others, for a frame costs as much as the rest of it. */
void gate_queue_request(struct gate *gate, const struct gate_request *request);

/* The DNS server (GATE_DNS_UDP, GATE_DNS_TCP). server.c */
int server_start(struct gate *gate) MUST_USE;
void server_watch(struct gate *gate, bool watches);
void server_stop(struct gate *gate);

/* The door: connections and where they were meant to go. door.c */
int door_start(struct gate *gate) MUST_USE;
void door_watch(struct gate *gate, bool watches);
void door_route(struct gate *gate, struct gate_route *route);
void door_stop(struct gate *gate);

/*
 * As accept4(2), of a listening socket of ours; FD_NONE: nobody waits, or there is no descriptor left. Then no
 * listening socket is watched for a moment. listen.c
 */
int gate_accept(struct gate *gate, int listening_fd, struct sockaddr_storage *ret_from);
int listen_init(struct gate *gate) MUST_USE;

/* Takes the connections that wait, before the last look at them. */
void door_accept(struct gate *gate);

/* One connection from inside. Takes fd. flow.c */
void flow_start(struct gate *gate, int fd, const struct gate_route *route);
void flow_go(struct gate *gate, uint32_t id, bool is_granted);
void flows_end(struct gate *gate);

/*
 * Another policy is in force: ends what it does not allow, or would have opened in another way, and counts the rest
 * against its limits. How many were ended.
 */
uint32_t flows_judge_again(struct gate *gate);

/* Nobody is left inside: ends each connection as soon as all that was said in it is handed on. */
void flows_stop(struct gate *gate);
