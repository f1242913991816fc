/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The state of the one gate of this process, shared by the files of this folder. What one of them alone may touch is a
 * struct of its own in it. Decides nothing. Runs in atoll-egress.
 */

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>

#include "egress/credentials/secrets.h"
#include "egress/dns/host-names.h"
#include "egress/flow/box-link.h"
#include "egress/flow/dial.h"
#include "egress/limit/memory.h"
#include "egress/limit/quota.h"
#include "egress/record/recording.h"
#include "egress/tls/authority.h"
#include "policy/policy.h"

enum { GATE_FLOWS_MAX = 2048, GATE_ROUTES_MAX = 256, GATE_STRAYS_MAX = 64, GATE_TCP_QUERIES_MAX = 16,
       GATE_WAITS_MAX = 128 };

struct exchange_record;
struct flow;
struct gate_service;
struct labels;
struct requests;
struct tcp_query;
struct visit;

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
	uint64_t reused;               /* host_names_count_reused() when it came */
};

/* Of door.c. */
struct door {
	struct note notes[GATE_ROUTES_MAX]; /* a ring */
	size_t next_note;
	struct stray strays[GATE_STRAYS_MAX];
	size_t stray_count;
	struct event stray_timer, quiet_timer;
	bool is_open, is_watched;
	bool has_routed;               /* a note came since quiet_timer was set */
};

/* A request that waits for GATE_ANSWER. */
struct gate_wait {
	uint32_t id;                   /* 0: free */
	struct requests *owner;        /* of its connection */
	struct exchange_record *record;
};

/* Requests that people are asked about. Of requests.c. */
struct gate_waits {
	struct gate_wait of[GATE_WAITS_MAX];
	uint32_t last_asked;
};

/* Of flow.c. */
struct flows {
	struct flow *of[GATE_FLOWS_MAX];
	size_t count, max;
};

/* Of gate.c. */
struct gate_hearing {
	struct buf scratch;            /* a frame of the box */
	struct event box_readable, stop_timer;
	unsigned state;                /* enum gate_state */
	const char *failure;           /* why the loop ended: static, in words; NULL */
};

/* Of publish.c. */
enum { PUBLISH_VISITS_MAX = 256 };

struct published_port {
	struct gate *gate;
	uint16_t port;
	int fd;                        /* owned; FD_NONE: there is none of this number */
	struct event *readable;
};

struct publishing {
	struct published_port ports[NET_PUBLISH_MAX];
	struct visit *visits[PUBLISH_VISITS_MAX];
	size_t visit_count, visits_max;
	uint32_t next_id;
};

struct gate {
	/* At the same place for good, with another content after a change: connections that are open borrow it. */
	struct policy now;
	const struct policy *policy;   /* now */
	struct event_base *base;
	struct box_link link;
	struct gate_hearing hearing;
	struct dialer *dialer;
	struct host_names *names;
	struct quota *quota;
	struct memory_budget memory;
	struct labels *labels;
	struct authority authority;    /* where requests are read */
	struct gate_secrets secrets;
	struct recording *recording;             /* NULL: nothing is recorded or replayed */
	uint64_t paused_until_ns;      /* GATE_PAUSE */
	bool asks;                     /* GATE_ASKING */
	bool is_stopping;              /* nobody is left inside: what was said is handed on, then we end */

	const struct gate_service *const *services; /* NULL-terminated; in the order of their start */
	int sockets[GATE_SOCKET_COUNT];
	struct event socket_events[GATE_SOCKET_COUNT];
	struct event rest_timer;       /* until the listening sockets are watched again */
	struct tcp_query *queries[GATE_TCP_QUERIES_MAX];
	struct door door;
	struct flows flows;
	struct gate_waits waits;
	struct publishing publishing;
};
