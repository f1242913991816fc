/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The box's side of the network gate: the sockets that were made inside, and atoll-egress, which serves them and is
 * started when something inside first uses the network. link.h says things to it, dispatch.c takes what it says, log.h
 * judges that once more and writes it down, and questions.h asks people. policy-change.h gives it another policy,
 * lockdown.h one that denies all; publish.h has the ports that the host may connect to, host-ports.h those of the host
 * that the sandbox may, certificates.h what programs
 * inside trust where requests are read. Run by atoll-box.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "gate-net/certificates.h"
#include "gate-net/host-ports.h"
#include "gate-net/names.h"
#include "gate-net/owner-headers.h"
#include "gate-net/policy-change.h"
#include "gate-net/publish.h"
#include "gate-net/questions.h"
#include "supervise/cooldown.h"
#include "supervise/hub.h"
#include "supervise/module.h"
#include "supervise/peer.h"
#include "wire/gate.h"

struct net_gate;
struct json;
struct sockaddr;
struct watch_network;
struct watch_options;

/* What a person is told at the end of one kind of failures. */
struct gate_tally {
	uint64_t count;
	char first[256];    /* of the first of them, escaped */
	bool differ;        /* others were about something else */
};

struct gate_counts {
	uint64_t lookups, connections, requests, simulated, replayed;
	uint64_t in_bytes, out_bytes;       /* of connections that have ended */
	uint64_t moved_in, moved_out;       /* of all, as the gate last said */
	bool is_measuring;                  /* it was asked for these */
	struct gate_tally unreached;        /* connections that were let out and came to nobody: "host:port: why" */
	struct gate_tally untrusted;        /* requests that were not sent, for no TLS was possible with the server */
};

/* What the gate is started with; descriptors are owned until it has them. */
struct gate_start_with {
	int secrets_fd;                     /* with values for it; FD_NONE: none */
	int canaries_fd;                    /* the same with tokens of planted canaries */
	uid_t uid;                          /* where the box is root */
};

struct net_gate {
	struct run *run;
	struct queue *queue;                /* of questions */
	struct store *store;                /* what is kept for ps and forks */
	bool is_used;                       /* the policy has a gate */
	int sockets[GATE_SOCKET_COUNT];     /* owned until the gate has them */
	struct loop_source sources[GATE_SOCKET_COUNT];
	struct gate_start_with start;
	struct peer peer;                   /* atoll-egress; what is sent before it starts waits in the socket */
	struct {
		struct gate_unsent *first, *last; /* first is owned */
		size_t bytes;
	} outbox;                           /* what its socket had no room for, in order */
	struct certificates certificates;                 /* where rules are about requests */
	const struct policy *next_policy;   /* while it changes: what goes out is allowed by both; NULL */
	struct gate_names names;
	struct gate_questions asking;
	struct policy_change change;               /* of the policy */
	struct publish publish;
	struct host_ports host_ports;
	uint32_t last_id;                   /* of a connection */
	struct cooldown cooldown;
	struct {
		char name[256];             /* the last look-up that was refused, and when: */
		uint64_t ns;                /* programs ask for two types at once */
	} last_refused;
	char failure[256];                  /* why there is no network any more; "": there is */
	struct gate_counts counts;
	struct subscriber subscriber;       /* to pauses of all gates */
};

/* Whether connections are read: rules are about requests, or they are recorded or replayed. */
bool gate_reads_requests(const struct net_gate *gate);

/* Holds nothing. What it is given is borrowed for its life. */
void gate_init(struct net_gate *gate, struct run *run, struct store *store, struct queue *queue);

/*
 * Before the jail is made: finds the program, so that a run without it fails before it begins; and starts it already
 * where rules are about requests, for the certificate that the jail is made with. host_uid: the sandbox's own, to which
 * the gate's differs. Takes canaries_fd, also on failure: a socket with tokens to look for. FD_NONE: there are none;
 * another negative: it could not be made, and this fails.
 */
int gate_prepare(struct net_gate *gate, uid_t host_uid, int canaries_fd) MUST_USE;

/* Before the mounts are planned: waits for that certificate, where there is one. Negative with *err. */
int gate_introduce(struct net_gate *gate, struct err *err) MUST_USE;

/* Tells the supervisor where the door is. */
void gate_fill_options(struct net_gate *gate, struct watch_options *options);

/* Once the jail stands and the loop is there. */
int gate_listen(struct net_gate *gate) MUST_USE;

/* A connect beyond loopback: see watch_handlers.on_gate. */
int gate_judge(struct net_gate *gate, const struct watch_network *event);

/* See watch_handlers.is_gate_behind. */
bool gate_is_behind(const struct net_gate *gate);

/* Such a connect was made: see watch_handlers.on_gated. */
int gate_route(struct net_gate *gate, pid_t pid, const struct sockaddr *source, const struct sockaddr *target);

/* Nothing lives inside any more: hears what is left to tell, and ends the gate. Negative: the log failed. */
int gate_finish(struct net_gate *gate) MUST_USE;
/* The report's "network" object. */
void gate_to_json(const struct net_gate *gate, struct json *json);

/* Its state is a struct net_gate: ends a gate that was lost, gives it another policy, tells it whether
 * anybody is asked. */
extern const struct module net_gate_module;
