/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The messages between atoll-box and atoll-egress, the network gate. The gate decides by the same snapshot as the box;
 * the box decides again before it lets a connection go out, and writes the log.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/address-block.h"
#include "wire/frame.h"

struct sockaddr;

/*
 * In atoll-egress. GATE_RECORDING_FD is a recording, opened to append to it, or to answer from it; GATE_SECRETS_FD has
 * values (wire/secret.h), where the policy names some; GATE_CANARIES_FD has the tokens of planted canaries in the same
 * form, each under its path. Any may be missing.
 */
enum { GATE_FD = 3, GATE_SNAPSHOT_FD = 4, GATE_RECORDING_FD = 5, GATE_SECRETS_FD = 6, GATE_CANARIES_FD = 7 };

/* How long GATE_STOP may take to hand on what was said. */
enum { GATE_LINGER_MS = 900 };

enum gate_message {
	/* box -> gate */
	GATE_START = 1,          /* struct gate_start; fds: enum gate_socket, but for a family that is not there */
	GATE_ROUTE,              /* struct gate_route: where a connection to the door was meant to go */
	GATE_GO,                 /* u32 id, u32 1: it is written down, or 0: the box refuses */
	GATE_STOP,               /* nobody is left inside: hand on what was said, tell what that was, and end */
	/* Before START, where rules are about requests: u32 bits of enum certificate_file; fds: the host's bundle, and
	 * one to write to for each bit. */
	GATE_INTRODUCE,
	GATE_POLICY,             /* fd: the snapshot of another policy, sealed; -> GATE_POLICY_SET */
	GATE_PUBLISH,            /* u32 index, u32 port inside; fd: where the host listens for it */
	GATE_INSIDE,             /* u32 id of GATE_ARRIVED; fd: a TCP socket made inside; none: refused */
	GATE_PAUSE,              /* u64 ms: for so long no name is given and no connection made */
	GATE_MEASURE,            /* -> GATE_MEASURED */
	GATE_ANSWER,             /* struct gate_answer: what becomes of a GATE_ASK */
	GATE_ASKING,             /* u32 1: what the policy asks about is asked about; 0: it is refused, as at first */
	GATE_HEADERS,            /* vector of headers.h: these are put into requests from now on, instead of others */
	/* gate -> box */
	GATE_READY = 64,         /* confined; nothing was read from the sandbox before */
	GATE_LOOKUP,             /* struct gate_lookup */
	GATE_OPEN,               /* struct gate_open: waits for GATE_GO, which may take as long as a person does */
	GATE_REFUSED,            /* struct gate_refused: instead of GATE_OPEN, or after it */
	GATE_CLOSED,             /* struct gate_closed */
	GATE_LIMIT,              /* struct gate_limit: an episode of it begins */
	GATE_BROKEN,             /* bytes: struct err; it ends */
	GATE_INTRODUCED,         /* the files are written */
	GATE_REQUESTS,           /* struct gate_request, one after the other: they are over */
	GATE_ARRIVED,            /* struct gate_arrived: waits for GATE_INSIDE */
	GATE_POLICY_SET,         /* u32 0: it is in force, or errno: the old one is; u32 connections that it ended */
	GATE_MEASURED,           /* u64 bytes to the sandbox, u64 from it, of all connections so far */
	GATE_ASK,                /* struct gate_ask: a request waits for GATE_ANSWER, as long as a person takes */
	GATE_FORGET,             /* u32 id of GATE_ASK: nobody waits for the answer, or needs it, any more */
	GATE_RESOLVED,           /* struct gate_resolved: waits for GATE_GO, as GATE_OPEN does */
	GATE_LEFT,               /* u32 id: the client says no more, while it waits for GATE_GO; it may be gone */
};

enum gate_socket { GATE_DOOR4, GATE_DNS_UDP, GATE_DNS_TCP, GATE_DOOR6, GATE_SOCKET_COUNT };

struct gate_start {
	bool has_ipv6;
	const char *test_hosts;  /* ATOLL_TEST_HOSTS: where names lead instead of asking the resolver; NULL */
	const char *proxy;       /* HTTPS_PROXY of the host: the way out; NULL: none */
	const char *no_proxy;    /* NO_PROXY; NULL */
};

/* An address with its port; IPv4 as ::ffff:a.b.c.d. */
struct gate_address {
	uint8_t bytes[16];
	uint16_t port;
};

/* The text of an address without its port; false: it is none. */
bool gate_address_parse(const char *text, uint8_t out[16]);

/* Of a socket of AF_INET or AF_INET6. */
struct gate_address gate_address_of(const struct sockaddr *from);

struct gate_route {
	uint32_t id;             /* of the connection, from now on */
	uint32_t pid;            /* of the caller, for the log */
	struct gate_address source, target;
	bool is_granted;         /* it is written down already: no GATE_OPEN, unless target means another host by now */
	const char *host;        /* what was granted; NULL: the target itself */
};

struct gate_lookup {
	const char *name;        /* as asked for, bytes that no host name has as '?' */
	uint32_t type;           /* of the question */
	bool is_allowed;
	uint32_t number;         /* of the address that it has now (policy/synthetic.h); 0: none was given */
	bool is_paused;          /* refused because of GATE_PAUSE */
};

/* A connection that the gate would let out. */
struct gate_open {
	uint32_t id, pid;
	const char *host;        /* name or address: what the decision is about */
	uint32_t port;
};

/*
 * Where a connection that was let out leads to, where that is for the box to say: a private address, before it is
 * connected to; or the host's loopback, once it is, for the port may be one of atoll's.
 */
struct gate_resolved {
	struct gate_open open;
	const char *address;
};

/* A request of a connection that is read, which the policy asks a person about. */
struct gate_ask {
	uint32_t id;             /* the gate's to choose, never 0 and never used again */
	struct gate_open open;   /* of the connection */
	const char *method, *path; /* hostile bytes */
};

struct gate_answer {
	uint32_t id;
	uint32_t is_granted;
	const char *rule, *reason, *hint; /* of a refusal, for whoever sent the request; never NULL when received */
};

enum gate_refusal {
	GATE_BY_POLICY,          /* no rule allows host and port */
	GATE_BY_SERVER_NAME,     /* the TLS client names another server (detail) */
	GATE_WITHOUT_NAME,       /* the TLS client names none, or cannot be understood */
	GATE_WITHOUT_TLS,        /* something else than TLS on a port of TLS */
	GATE_BY_ADDRESS,         /* the name leads to an address that is not allowed (detail) */
	GATE_BY_LOOKUP,          /* nobody looked up the name of this address: it has none */
	GATE_BY_LIMIT,           /* one of network.limits or of a rule (limit, detail) */
	GATE_BY_PAUSE,           /* nothing new goes out for a while: GATE_PAUSE */
	GATE_REFUSAL_COUNT,
};

/* What a recording had to do with a request. */
enum gate_replay { GATE_NOT_REPLAYED, GATE_REPLAYED, GATE_NOT_RECORDED, GATE_REPLAY_COUNT };

struct gate_refused {
	struct gate_open open;
	enum gate_refusal refusal;
	const char *detail;      /* NULL: none; hostile bytes. GATE_BY_LIMIT: the rule's id, NULL: the session's */
	uint32_t limit;          /* GATE_BY_LIMIT: enum net_limit; NET_LIMIT_COUNT: more than the gate can take */
};

/* Somebody of the host connected to a published port. */
struct gate_arrived {
	uint32_t id;             /* with the highest bit: the others are the box's */
	uint32_t index;          /* as GATE_PUBLISH had it */
	struct gate_address source;
};

/* A limit that is in the way, once an episode. */
struct gate_limit {
	const char *rule;        /* id; NULL: the session's limits */
	uint32_t kind;           /* enum net_limit */
	uint64_t amount;
};

struct gate_closed {
	struct gate_open open;
	const char *address;     /* where it was connected to outside; NULL: nowhere */
	uint64_t in_bytes, out_bytes, us;
	const char *why;         /* NULL: both sides ended it; what went wrong */
};

/* A secret, or what stands inside in its place, that was found where it has no business to be. */
struct gate_leak {
	const char *secret;      /* its name; NULL: there was none */
	const char *where;       /* "the URL", "a header", "the body" */
	bool is_placeholder, is_refused;
};

/* A request of a connection that is read. */
struct gate_request {
	struct gate_open open;   /* of the connection */
	const char *method, *path;   /* path: as it was sent, without its query; hostile bytes; "": malformed */
	uint32_t climbs;             /* of its query (http/target.h) */
	uint32_t status;         /* that the client got; 0: none */
	enum gate_replay replay;
	uint64_t in_bytes, out_bytes, us; /* of the bodies */
	const char *problem;     /* why it was refused, where no rule did that, or broke off; NULL */
	bool is_limited;         /* refused by a limit of requests */
	const char *limit_rule;  /* id of the rule whose limit that is; NULL: the session's */
	uint32_t asked;          /* id of the GATE_ASK that decided it; 0: nobody was asked, or waited any more */
	const char *secrets;     /* names of those that were put in, separated by spaces; "": none */
	struct gate_leak leak;
};

/* GATE_REQUEST_MAX: the fields of one. */
enum { GATE_REQUEST_MAX = 12 << 10, GATE_SECRETS_SIZE = 1024 };

/*
 * Whether nothing but TLS is spoken on this port, from the first byte of the client on. A connection to one is written
 * down when its client has named the server.
 */
bool gate_port_is_tls(uint16_t port);

/*
 * put: the whole frame of its type into out, which is reset; 0, or the buffer's error. get: 0, and the strings are
 * borrowed from the frame; or -EBADMSG with all fields zero, for a field that is missing, more behind the last one, a
 * port above 65535, an unknown refusal, a lookup that is both allowed and paused, or a gate_ask without an id. Which
 * ids are open, and what an address, a limit or a rule id stands for, only its reader knows and has to check.
 */
int gate_start_put(struct buf *out, const struct gate_start *start) MUST_USE;
int gate_start_get(struct frame *frame, struct gate_start *ret_start) MUST_USE;
int gate_route_put(struct buf *out, const struct gate_route *route) MUST_USE;
int gate_route_get(struct frame *frame, struct gate_route *ret_route) MUST_USE;
int gate_lookup_put(struct buf *out, const struct gate_lookup *lookup) MUST_USE;
int gate_lookup_get(struct frame *frame, struct gate_lookup *ret_lookup) MUST_USE;
int gate_open_put(struct buf *out, const struct gate_open *open) MUST_USE;
int gate_open_get(struct frame *frame, struct gate_open *ret_open) MUST_USE;
int gate_resolved_put(struct buf *out, const struct gate_resolved *resolved) MUST_USE;
int gate_resolved_get(struct frame *frame, struct gate_resolved *ret_resolved) MUST_USE;
int gate_ask_put(struct buf *out, const struct gate_ask *ask) MUST_USE;
int gate_ask_get(struct frame *frame, struct gate_ask *ret_ask) MUST_USE;
int gate_answer_put(struct buf *out, const struct gate_answer *answer) MUST_USE;
int gate_answer_get(struct frame *frame, struct gate_answer *ret_answer) MUST_USE;
int gate_refused_put(struct buf *out, const struct gate_refused *refused) MUST_USE;
int gate_refused_get(struct frame *frame, struct gate_refused *ret_refused) MUST_USE;
int gate_closed_put(struct buf *out, const struct gate_closed *closed) MUST_USE;
int gate_closed_get(struct frame *frame, struct gate_closed *ret_closed) MUST_USE;
int gate_arrived_put(struct buf *out, const struct gate_arrived *arrived) MUST_USE;
int gate_arrived_get(struct frame *frame, struct gate_arrived *ret_arrived) MUST_USE;
int gate_limit_put(struct buf *out, const struct gate_limit *limit) MUST_USE;
int gate_limit_get(struct frame *frame, struct gate_limit *ret_limit) MUST_USE;

/*
 * put: one more in a frame GATE_REQUESTS that was begun. get: 1: the next of them, its strings borrowed from the frame;
 * 0: that was the last, *ret_request is untouched; -EBADMSG: also for a leak that names a secret without a place or a
 * place without a secret, and then nothing of *ret_request may be used.
 */
void gate_request_put(struct buf *out, const struct gate_request *request);
int gate_request_get(struct frame *frame, struct gate_request *ret_request) MUST_USE;
