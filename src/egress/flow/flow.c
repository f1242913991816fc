/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/flow/flow.h"

#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/str.h"
#include "egress/flow/handshake.h"
#include "egress/flow/relay.h"
#include "egress/flow/requests.h"
#include "egress/flow/service.h"
#include "egress/http/intercept.h"
#include "egress/limit/labels.h"
#include "egress/tls/hello.h"
#include "os/clock.h"
#include "policy/decide.h"
#include "policy/synthetic.h"

/*
 * One connection: judged by host and port, told to the box, dialled, relayed. Where it goes to a name, the first bytes
 * of the client are looked at before any of them leaves: a TLS client must name the same host, so that a server of many
 * names is not asked for another (domain fronting by server name). On the ports of TLS that comes before anything else;
 * on all others the server may speak first, so the way in is open meanwhile.
 */

enum { HELLO_SECONDS = 30, SILENCE_MS = 300, PEEK_MAX = 64 << 10 };

/* FLOW_RESOLVED: the box says whether it may go on to where it leads; to loopback, it is connected already. */
enum flow_state { FLOW_HELLO, FLOW_ASKED, FLOW_DIALLING, FLOW_RESOLVED, FLOW_CONNECTED };

/* What the client says first. */
struct opening {
	struct event readable;
	struct hello hello;
	size_t seen;               /* bytes of the client that hello was fed with */
	bool is_http, is_http2;    /* in plain text, as far as its first bytes tell; with prior knowledge */
	bool is_plain;
	bool is_inspected, has_spoken;
};

/* Where a connection leads to outside. */
struct destination {
	struct gate_address address;
	bool is_proxied;           /* address is that of the host's proxy */
	bool is_private;           /* a person was asked about address: it goes nowhere else */
};

struct flow {
	struct gate *gate;
	size_t slot;
	uint32_t id, pid;
	enum flow_state state;
	char host[254];
	uint16_t port;
	bool is_named;             /* host is a name, and no address */
	bool is_host_port;         /* of the host's own loopback (network.host_ports): host is "localhost" */
	bool is_read;              /* its requests are: rules are about them, or they are recorded */
	bool has_server;           /* false: nothing is dialled, for a rule or a recording answers */
	bool is_asked;             /* a person lets it out, or does not: the box tells */
	int inside_fd, outside_fd;
	struct opening opening;
	struct event left;
	struct dial *dial;
	struct handshake handshake;
	struct relay relay;
	struct intercept *intercept;   /* instead of the relay */
	struct requests requests;
	struct quota_share share;
	bool is_counted;           /* by the quota: owes it a quota_disconnect() */
	struct destination to;
	uint64_t started_ns;
};

/* Why a connection ended whose bytes are used up. */
static const char used_up[] = "network.limits";

static struct gate_open describe(const struct flow *flow)
{
	return (struct gate_open){ .id = flow->id, .pid = flow->pid, .host = flow->host, .port = flow->port };
}

static void report_closed(struct flow *flow, const char *why)
{
	char address[46];
	struct gate_closed closed = {
		.open = describe(flow),
		.address = flow->outside_fd >= 0 ? address : NULL,
		.in_bytes = flow->relay.halves[RELAY_IN].moved_bytes,
		.out_bytes = flow->relay.halves[RELAY_OUT].moved_bytes,
		.us = (clock_monotonic_ns() - flow->started_ns) / 1000,
		.why = why,
	};

	gate_address_format(flow->to.address.bytes, address);
	if (flow->intercept) {
		intercept_count(flow->intercept, &closed.out_bytes, &closed.in_bytes);
		/* Its requests are over before it is. */
		intercept_free(flow->intercept);
	}
	box_link_queued(&flow->gate->link, gate_closed_put(box_link_queue(&flow->gate->link), &closed));
}

/* Ends it; why (NULL: both sides did) also makes it a reset for whoever is left. */
static void end_flow(struct flow *flow, const char *why)
{
	static const struct linger reset = { .l_onoff = 1 };
	struct gate *gate = flow->gate;

	if (flow->state >= FLOW_ASKED)
		report_closed(flow, why);
	event_del(&flow->opening.readable);
	event_del(&flow->left);
	if (flow->is_counted)
		quota_disconnect(&flow->share);
	hello_done(&flow->opening.hello);
	handshake_done(&flow->handshake);
	dial_cancel(flow->dial);
	relay_done(&flow->relay);
	if (why) {
		setsockopt(flow->inside_fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
		if (flow->outside_fd >= 0)
			setsockopt(flow->outside_fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
	}
	close_fd(&flow->inside_fd);
	close_fd(&flow->outside_fd);
	gate->flows.of[flow->slot] = NULL;
	gate->flows.count--;
	free(flow);
	gate_check_stopped(gate);
}

static void report_refused(struct flow *flow, const struct gate_refused *refused)
{
	box_link_send(&flow->gate->link, gate_refused_put(&flow->gate->link.out, refused));
	end_flow(flow, "refused");
}

static void refuse(struct flow *flow, enum gate_refusal refusal, const char *detail)
{
	report_refused(flow, &(struct gate_refused){ .open = describe(flow), .refusal = refusal, .detail = detail });
}

static void refuse_by_limit(struct flow *flow, const struct quota_hit *hit)
{
	report_refused(flow, &(struct gate_refused){ .open = describe(flow), .refusal = GATE_BY_LIMIT,
						   .detail = hit->rule, .limit = hit->kind });
}

static void on_relay_end(void *context, int errnum)
{
	end_flow(context, errnum == EDQUOT ? used_up : errnum ? err_errno_name(errnum) : NULL);
}

static void on_intercept_end(void *context, const char *why)
{
	end_flow(context, why && str_equal(why, "EDQUOT") ? used_up : why);
}

static void on_said(void *context)
{
	struct flow *flow = context;

	if (flow->gate->is_stopping)
		end_flow(flow, NULL);
}

static void start_hello(struct flow *flow);

static void on_second_hello(void *context, const struct hello *second)
{
	bool is_named = second->state == HELLO_NAMED;

	refuse(context, is_named ? GATE_BY_SERVER_NAME : GATE_WITHOUT_NAME, is_named ? second->name : NULL);
}

static void on_handshake_silence(void *context)
{
	end_flow(context, "ETIMEDOUT");
}

static bool is_tls(const struct flow *flow)
{
	return flow->opening.hello.state == HELLO_NAMED || flow->opening.hello.state == HELLO_UNNAMED;
}

static void start_handshake(struct flow *flow)
{
	const struct handshake_options options = {
		.base = flow->gate->base, .relay = &flow->relay, .inside_fd = flow->inside_fd,
		.outside_fd = flow->outside_fd, .first = &flow->opening.hello, .on_refused = on_second_hello,
		.on_silence = on_handshake_silence, .context = flow,
	};

	handshake_start(&flow->handshake, &options);
}

static void start_relay(struct flow *flow)
{
	const struct relay_options options = { flow->inside_fd, flow->outside_fd, &flow->share, on_relay_end, on_said,
					       flow };

	if (relay_init(&flow->relay, flow->gate->base, &options) < 0) {
		end_flow(flow, "ENOMEM");
		return;
	}
	if (is_tls(flow)) {
		start_handshake(flow);
		return;
	}
	relay_start(&flow->relay, RELAY_IN);
	if (flow->opening.is_inspected)
		relay_start(&flow->relay, RELAY_OUT);
	else
		start_hello(flow);
}

static void start_intercept(struct flow *flow)
{
	struct gate *gate = flow->gate;
	const struct host_port *port = policy_host_port(gate->policy, flow->port);
	struct intercept_options options = {
		.base = gate->base,
		.memory = &gate->memory,
		.inside_fd = flow->inside_fd,
		.outside_fd = flow->outside_fd,
		.server = { flow->host, flow->port, !flow->opening.is_plain,
			    port && flow->is_host_port ? port->name : NULL },
		.is_http2 = flow->opening.is_http2,
		.policy = gate->policy,
		.ca = gate->authority.ca,
		.upstream = flow->has_server ? authority_upstream(&gate->authority) : NULL,
		.share = &flow->share,
		.on_end = on_intercept_end,
		.on_said = on_said,
		.context = flow,
	};
	struct gate_open open = describe(flow);
	int r;

	/* An answer comes in pieces that are small and matter at once; dial.c does the same outside. */
	setsockopt(flow->inside_fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	requests_init(&flow->requests, gate, &open, options.server.is_tls);
	options.hooks = requests_hooks(&flow->requests);
	r = flow->has_server && !options.upstream ? -ENOENT : 0;
	if (r == 0)
		r = intercept_new(&flow->intercept, &options, clock_realtime_ns() / 1000000000);
	flow->requests.intercept = flow->intercept;
	if (r < 0)
		end_flow(flow, err_errno_name(-r));
}

/* Why nobody was reached. The host's proxy is told apart: whoever looks for a fault at the host would look in vain. */
static const char *failure_of(const struct dial_result *result)
{
	static const struct {
		int errnum;
		const char *words;
	} of_proxy[] = { { EACCES, "the host's proxy refuses it" },
			 { ETIMEDOUT, "the host's proxy does not answer in time" },
			 { ECONNRESET, "the host's proxy has hung up" } };

	if (!result->is_proxied)
		return result->errnum < 0 ? "the name cannot be resolved" : err_errno_name(result->errnum);
	for (size_t i = 0; i < ARRAY_SIZE(of_proxy); i++)
		if (of_proxy[i].errnum == result->errnum)
			return of_proxy[i].words;
	return "the host's proxy cannot be reached";
}

static void start_transfer(struct flow *flow)
{
	flow->state = FLOW_CONNECTED;
	if (flow->is_read)
		start_intercept(flow);
	else
		start_relay(flow);
}

/* Where it leads to: the box says what comes of it. */
static void tell_resolved(struct flow *flow)
{
	char address[46];
	struct gate_resolved resolved = { .open = describe(flow), .address = address };

	gate_address_format(flow->to.address.bytes, address);
	flow->state = FLOW_RESOLVED;
	box_link_send(&flow->gate->link, gate_resolved_put(&flow->gate->link.out, &resolved));
	event_add(&flow->left, NULL);
}

/* Whether the address that the name leads to is one that people are asked about. */
static bool may_be_asked_about(const struct flow *flow, const struct gate_address *address)
{
	return flow->gate->asks && policy_decide_resolved(flow->gate->policy, address->bytes, flow->port,
							  flow->is_asked).verdict == VERDICT_ASK;
}

static void on_dialled(void *context, const struct dial_result *result)
{
	struct flow *flow = context;
	char address[46];

	flow->dial = NULL;
	if (result->outcome == DIAL_REFUSED && may_be_asked_about(flow, &result->address)) {
		flow->to.address = result->address;
		flow->to.is_private = true;
		tell_resolved(flow);
		return;
	}
	if (result->outcome == DIAL_REFUSED) {
		gate_address_format(result->address.bytes, address);
		refuse(flow, GATE_BY_ADDRESS, address);
		return;
	}
	if (result->outcome == DIAL_FAILED) {
		end_flow(flow, failure_of(result));
		return;
	}
	flow->to.address = result->address;
	flow->to.is_proxied = result->is_proxied;
	flow->outside_fd = result->fd;
	/* However it came there: none of our own ports is reached. */
	if (!flow->to.is_proxied && address_is_loopback(flow->to.address.bytes))
		tell_resolved(flow);
	else
		start_transfer(flow);
}

static struct action action_of(const struct flow *flow)
{
	return (struct action){ .kind = ACTION_NET_CONNECT, .subject = flow->host, .port = flow->port,
				.is_outward = true };
}

static void ask_box(struct flow *flow)
{
	struct gate_open open = describe(flow);

	flow->state = FLOW_ASKED;
	box_link_send(&flow->gate->link, gate_open_put(&flow->gate->link.out, &open));
	event_add(&flow->left, NULL);
}

/* Once. It may be a half of the connection alone: whether somebody is there to read an answer, the box can tell. */
static void on_left(evutil_socket_t fd, short what, void *context)
{
	struct flow *flow = context;

	(void)fd;
	(void)what;
	frame_begin(&flow->gate->link.out, GATE_LEFT);
	frame_put_u32(&flow->gate->link.out, flow->id);
	box_link_send(&flow->gate->link, frame_end(&flow->gate->link.out));
}

/* Whichever of the two loopbacks of this machine answers, and nothing else, whatever any name means. */
static int dial_host_port(struct flow *flow)
{
	const struct gate_address addresses[] = {
		{ { [10] = 0xff, 0xff, 127, 0, 0, 1 }, flow->port },
		{ { [15] = 1 }, flow->port },
	};

	return dial_start_at(&flow->dial, flow->gate->dialer, addresses, ARRAY_SIZE(addresses), on_dialled, flow);
}

static void dial(struct flow *flow)
{
	int r;

	if (!flow->has_server) {
		flow->state = FLOW_CONNECTED;
		start_intercept(flow);
		return;
	}
	flow->state = FLOW_DIALLING;
	if (flow->to.is_private)
		r = dial_start_at(&flow->dial, flow->gate->dialer, &flow->to.address, 1, on_dialled, flow);
	else if (flow->is_host_port)
		r = dial_host_port(flow);
	else
		r = dial_start(&flow->dial, flow->gate->dialer, flow->host, flow->port, on_dialled, flow);
	if (r < 0)
		end_flow(flow, "ENOMEM");
}

void flow_go(struct gate *gate, uint32_t id, bool is_granted)
{
	for (size_t i = 0; i < GATE_FLOWS_MAX; i++) {
		struct flow *flow = gate->flows.of[(id + i) % GATE_FLOWS_MAX];

		if (!flow || flow->id != id || (flow->state != FLOW_ASKED && flow->state != FLOW_RESOLVED))
			continue;
		event_del(&flow->left);
		if (!is_granted)
			end_flow(flow, "refused");
		else if (flow->outside_fd >= 0)
			start_transfer(flow);
		else
			dial(flow);
		return;
	}
}

/* ---- what the client says first ---- */

static void end_opening(struct flow *flow)
{
	event_del(&flow->opening.readable);
	hello_done(&flow->opening.hello);
	if (flow->opening.has_spoken)
		setsockopt(flow->inside_fd, SOL_SOCKET, SO_RCVLOWAT, &(int){ 1 }, sizeof(int));
	flow->opening.is_inspected = true;
	if (flow->state == FLOW_HELLO)
		ask_box(flow);
	else if (is_tls(flow))
		start_handshake(flow);
	else
		relay_start_now(&flow->relay, RELAY_OUT);
}

/* Whether its client must say what it is before the box is asked and anything is dialled. */
static bool speaks_first(const struct flow *flow)
{
	return flow->is_read || flow->gate->recording || (flow->is_named && gate_port_is_tls(flow->port));
}

/* What a recording has the requests of. */
static void pass_http(struct flow *flow)
{
	flow->is_read = flow->is_read || flow->gate->recording;
	end_opening(flow);
}

/* Whether plain text begins as a request does: a method, a blank, and a path. */
static bool is_request(const uint8_t *bytes, size_t size)
{
	enum { METHOD_MAX = 7 };
	size_t length = 0;

	while (length < size && length <= METHOD_MAX && bytes[length] >= 'A' && bytes[length] <= 'Z')
		length++;
	return length >= 3 && length <= METHOD_MAX && length + 1 < size && bytes[length] == ' ' &&
	       bytes[length + 1] == '/';
}

/* How HTTP/2 begins where the client knows that the server speaks it (RFC 9113 3.4); a part of it, or more. */
static bool is_preface(const uint8_t *bytes, size_t size, bool *ret_is_whole)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	size_t whole = sizeof preface - 1, there = size < whole ? size : whole;

	*ret_is_whole = size >= whole;
	return there && memcmp(bytes, preface, there) == 0;
}

/*
 * Whether a client that connected to an address may have a server's name there: where the policy lets out what it does
 * not list, a name that it denies, or whose requests it judges, would else be reached by its number.
 */
static bool may_name(const struct flow *flow)
{
	const struct policy *policy = flow->gate->policy;
	struct action named = { .kind = ACTION_NET_CONNECT, .subject = flow->opening.hello.name, .port = flow->port };
	struct action numbered = action_of(flow);

	/* What the server of a port of this machine is called is its own affair: the port alone is what was let out. */
	if (flow->is_host_port && !flow->is_read)
		return true;
	return !flow->is_named && !flow->is_read && !policy_intercepts(policy, named.subject, named.port) &&
	       policy_decide(policy, &named).verdict >= policy_decide(policy, &numbered).verdict;
}

static void judge_hello(struct flow *flow)
{
	switch (flow->opening.hello.state) {
	case HELLO_MORE:
		return;
	case HELLO_PLAIN:
		flow->opening.is_plain = true;
		if (speaks_first(flow) && gate_port_is_tls(flow->port))
			refuse(flow, GATE_WITHOUT_TLS, NULL);
		else if (flow->opening.is_http)
			pass_http(flow);
		else
			end_opening(flow);
		return;
	case HELLO_NAMED:
		if (hello_names(&flow->opening.hello, flow->host) || may_name(flow))
			pass_http(flow);
		else
			refuse(flow, GATE_BY_SERVER_NAME, flow->opening.hello.name);
		return;
	case HELLO_UNNAMED:
		/* There is nothing that an address could be asked for by. */
		if (!flow->is_named) {
			pass_http(flow);
			return;
		}
		__attribute__((fallthrough));
	case HELLO_MALFORMED:
	case HELLO_RETRY: /* of no client */
		refuse(flow, GATE_WITHOUT_NAME, NULL);
		return;
	}
}

/* Wakes us only when there is more than what was seen already: the bytes stay in the socket, for splice(2). */
static void wait_for_more(struct flow *flow)
{
	setsockopt(flow->inside_fd, SOL_SOCKET, SO_RCVLOWAT, &(int){ (int)flow->opening.seen + 1 }, sizeof(int));
	if (flow->opening.has_spoken)
		return;
	flow->opening.has_spoken = true;
	event_add(&flow->opening.readable, &(struct timeval){ .tv_sec = HELLO_SECONDS });
}

/* The client has no more to say, and said nothing or not enough. */
static void end_hello(struct flow *flow)
{
	if (flow->opening.hello.state == HELLO_PLAIN)
		judge_hello(flow);
	else if (flow->opening.seen)
		refuse(flow, GATE_WITHOUT_NAME, NULL);
	else if (flow->state == FLOW_HELLO)
		end_flow(flow, NULL);
	else
		end_opening(flow);
}

/* On the ports of other protocols servers may speak first: only who records looks for TLS there before dialling. */
static bool may_be_other(const struct flow *flow)
{
	return flow->state == FLOW_HELLO && !flow->is_read && !gate_port_is_tls(flow->port);
}

static void on_silence(struct flow *flow)
{
	if (!may_be_other(flow) || flow->opening.seen) {
		end_hello(flow);
		return;
	}
	event_del(&flow->opening.readable);
	ask_box(flow);
}

/* Whether its requests are read, and the rest of what is said must come before it is known how. */
static bool is_preface_cut(const struct flow *flow, const uint8_t *bytes)
{
	bool is_whole;

	return (flow->is_read || flow->gate->recording) && flow->opening.hello.state == HELLO_PLAIN &&
	       is_preface(bytes, flow->opening.seen, &is_whole) && !is_whole;
}

static void on_client(evutil_socket_t fd, short what, void *context)
{
	static uint8_t peeked[PEEK_MAX];
	struct flow *flow = context;
	size_t seen = flow->opening.seen;
	bool is_whole;
	ssize_t n;

	if (what & EV_TIMEOUT) {
		on_silence(flow);
		return;
	}
	n = recv(fd, peeked, sizeof peeked, MSG_PEEK | MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		end_flow(flow, err_errno_name(errno));
		return;
	}
	if ((size_t)n <= seen) {
		end_hello(flow);
		return;
	}
	flow->opening.seen = (size_t)n;
	hello_feed(&flow->opening.hello, peeked + seen, (size_t)n - seen);
	flow->opening.is_http2 = is_preface(peeked, (size_t)n, &is_whole) && is_whole;
	flow->opening.is_http = flow->opening.is_http2 || is_request(peeked, (size_t)n);
	/* What else is there is none of our business, however much of it; a hello is not as long as that. */
	if (flow->opening.hello.state == HELLO_MORE && n == PEEK_MAX)
		end_hello(flow);
	else if (flow->opening.hello.state == HELLO_MORE || is_preface_cut(flow, peeked))
		wait_for_more(flow);
	else
		judge_hello(flow);
}

static void start_hello(struct flow *flow)
{
	struct timeval limit = may_be_other(flow) ? (struct timeval){ .tv_usec = SILENCE_MS * 1000 }
						  : (struct timeval){ .tv_sec = HELLO_SECONDS };

	event_add(&flow->opening.readable, flow->state == FLOW_HELLO ? &limit : NULL);
}

/* ---- the beginning ---- */

static struct flow *new_flow(struct gate *gate, int fd, const struct gate_route *route)
{
	struct flow *flow = gate->flows.count < gate->flows.max ? calloc(1, sizeof *flow) : NULL;
	size_t slot = route->id % GATE_FLOWS_MAX;

	if (!flow)
		return NULL;
	while (gate->flows.of[slot])
		slot = (slot + 1) % GATE_FLOWS_MAX;
	*flow = (struct flow){
		.gate = gate, .slot = slot, .id = route->id, .pid = route->pid, .inside_fd = fd, .outside_fd = FD_NONE,
		.started_ns = clock_monotonic_ns(),
	};
	hello_init(&flow->opening.hello, HELLO_FIRST);
	event_assign(&flow->opening.readable, gate->base, fd, EV_READ | EV_PERSIST, on_client, flow);
	event_assign(&flow->left, gate->base, fd, EV_CLOSED, on_left, flow);
	gate->flows.of[flow->slot] = flow;
	gate->flows.count++;
	return flow;
}

/* False: this address of ours belongs to no name. */
static bool name_target(struct flow *flow, const struct gate_address *target)
{
	const char *host = host_names_find(flow->gate->names, target->bytes);
	uint32_t number;

	flow->port = target->port;
	flow->is_named = host != NULL;
	flow->is_host_port = address_is_loopback(target->bytes);
	if (flow->is_host_port)
		host = "localhost";
	flow->opening.is_inspected = flow->is_host_port ||
				       (!host && flow->gate->policy->network.default_verdict == VERDICT_DENY);
	if (host)
		return str_copy(flow->host, sizeof flow->host, host) == 0;
	gate_address_format(target->bytes, flow->host);
	return !synthetic_find(target->bytes, &number);
}

/* What is said by the name itself, as soon as it is resolved; false: as below. */
static bool count_labels(struct flow *flow, const struct action *action)
{
	struct gate *gate = flow->gate;
	struct labels_hit said;
	struct quota_hit hit;
	size_t bytes;
	int r;

	if (!flow->is_named || !flow->has_server)
		return true;
	r = labels_take(gate->labels, gate->policy, action, &bytes, &said);
	if (r == 0 && bytes && quota_spend(&flow->share, QUOTA_OUT, bytes, flow->started_ns, &hit)) {
		refuse_by_limit(flow, &hit);
		return false;
	}
	if (r == 0)
		return true;
	hit = (struct quota_hit){ said.rule, NET_LIMIT_LABELS, said.amount };
	if (r > 0 && said.is_first) {
		struct gate_limit limit = { hit.rule, hit.kind, hit.amount };

		box_link_send(&gate->link, gate_limit_put(&gate->link.out, &limit));
	}
	if (r > 0)
		refuse_by_limit(flow, &hit);
	else
		end_flow(flow, "ENOMEM");
	return false;
}

/* Against the limits; false: it is refused, and gone. */
static bool count(struct flow *flow, const struct action *action)
{
	struct gate *gate = flow->gate;
	struct quota_hit hit;
	int r;

	flow->share = (struct quota_share){ gate->quota, policy_limited_rules(gate->policy, action) };
	r = quota_connect(&flow->share, flow->host, flow->started_ns, &hit);
	flow->is_counted = r == 0;
	if (r > 0)
		refuse_by_limit(flow, &hit);
	else if (r < 0)
		end_flow(flow, "ENOMEM");
	return r == 0 && count_labels(flow, action);
}

static void proceed(struct flow *flow, bool is_granted)
{
	if (speaks_first(flow))
		start_hello(flow);
	else if (is_granted)
		dial(flow);
	else
		ask_box(flow);
}

/* Whether anybody outside is asked: not where a rule answers for the whole host, or a recording. */
static bool has_server(const struct gate *gate, enum verdict verdict)
{
	return (verdict == VERDICT_ALLOW || verdict == VERDICT_ASK) && !recording_answers(gate->recording);
}

void flow_start(struct gate *gate, int fd, const struct gate_route *route)
{
	const struct gate_address *target = &route->target;
	struct flow *flow = new_flow(gate, fd, route);
	struct action action;
	enum verdict verdict;

	if (!flow) {
		struct gate_refused refused = { .open = { .pid = route->pid, .host = "" }, .refusal = GATE_BY_LIMIT,
						.limit = NET_LIMIT_COUNT };

		close_fd(&fd);
		box_link_send(&gate->link, gate_refused_put(&gate->link.out, &refused));
		return;
	}
	if (!name_target(flow, target)) {
		refuse(flow, GATE_BY_LOOKUP, NULL);
		return;
	}
	action = action_of(flow);
	verdict = policy_decide(gate->policy, &action).verdict;
	flow->is_asked = verdict == VERDICT_ASK;
	flow->has_server = has_server(gate, verdict);
	flow->is_read = !flow->has_server || policy_intercepts(gate->policy, flow->host, flow->port);
	if (gate->paused_until_ns > flow->started_ns)
		refuse(flow, GATE_BY_PAUSE, NULL);
	else if (!gate_may_open(gate, verdict))
		refuse(flow, GATE_BY_POLICY, NULL);
	else if (count(flow, &action))
		proceed(flow, route->is_granted);
}

/* A person's yes to a private address holds while people are asked about it. */
static bool may_lead_there(const struct flow *flow)
{
	enum verdict verdict = policy_decide_resolved(flow->gate->policy, flow->to.address.bytes, flow->port,
						      flow->is_asked).verdict;

	return verdict == VERDICT_ALLOW || (verdict == VERDICT_ASK && flow->to.is_private);
}

/* Whether it would be opened in the same way now. Sets its share. */
static bool is_still_allowed(struct flow *flow)
{
	const struct policy *policy = flow->gate->policy;
	struct action action = action_of(flow);
	bool leads_there = (flow->outside_fd >= 0 && flow->is_named && !flow->to.is_proxied) || flow->to.is_private;
	enum verdict verdict = policy_decide(policy, &action).verdict;
	bool must_read = policy_intercepts(policy, flow->host, flow->port);

	flow->share.rules = policy_limited_rules(policy, &action);
	/* A recording has requests read that no rule is about, but what a rule is about is never left unread. */
	return (verdict >= VERDICT_SIMULATE || (verdict == VERDICT_ASK && flow->is_asked)) &&
	       has_server(flow->gate, verdict) == flow->has_server &&
	       (must_read == flow->is_read || (flow->gate->recording && !must_read)) &&
	       (!leads_there || may_lead_there(flow));
}

uint32_t flows_judge_again(struct gate *gate)
{
	uint32_t ended = 0;

	for (size_t i = 0; i < GATE_FLOWS_MAX; i++) {
		struct flow *flow = gate->flows.of[i];
		bool is_dialling = flow && flow->state == FLOW_DIALLING;

		if (!flow)
			continue;
		if (!is_still_allowed(flow)) {
			/* The quota that it was counted by is gone. */
			flow->is_counted = false;
			end_flow(flow, "the policy has changed");
			ended++;
			continue;
		}
		quota_hold(&flow->share);
		flow->is_counted = true;
		/* Its addresses were judged by the old policy. */
		if (is_dialling) {
			dial_cancel(flow->dial);
			flow->dial = NULL;
			dial(flow);
		}
	}
	return ended;
}

static void end_all(struct gate *gate)
{
	for (size_t i = 0; i < GATE_FLOWS_MAX; i++)
		if (gate->flows.of[i])
			end_flow(gate->flows.of[i], "the sandbox has ended");
}

static void stop(struct gate *gate)
{
	gate->is_stopping = true;
	for (size_t i = 0; i < GATE_FLOWS_MAX; i++) {
		struct flow *flow = gate->flows.of[i];

		if (flow && flow->state == FLOW_CONNECTED &&
		    (flow->intercept ? intercept_has_said(flow->intercept) : flow->relay.halves[RELAY_OUT].is_closed))
			end_flow(flow, NULL);
	}
}

const struct gate_service flow_service = { .stop = stop, .end = end_all };
