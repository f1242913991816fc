/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/flow/publish.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "egress/flow/relay.h"
#include "egress/flow/service.h"
#include "os/clock.h"

enum { ACCEPT_BATCH = 16, CONNECT_SECONDS = 10, ID_BIT = 1u << 31 };

enum visit_state { VISIT_ASKED, VISIT_CONNECTING, VISIT_CONNECTED };

struct visit {
	struct gate *gate;
	size_t slot;
	uint32_t id;
	uint16_t port;
	enum visit_state state;
	bool is_second;            /* nothing listened on ::1: 127.0.0.1 */
	int inside_fd, outside_fd;
	struct event writable;
	struct quota_share share;
	struct relay relay;
	uint64_t started_ns;
};

static void report_closed(struct visit *visit, const char *why)
{
	struct gate_closed closed = {
		.open = { .id = visit->id, .host = "127.0.0.1", .port = visit->port },
		.in_bytes = visit->relay.halves[RELAY_IN].moved_bytes,
		.out_bytes = visit->relay.halves[RELAY_OUT].moved_bytes,
		.us = (clock_monotonic_ns() - visit->started_ns) / 1000,
		.why = why,
	};

	box_link_queued(&visit->gate->link, gate_closed_put(box_link_queue(&visit->gate->link), &closed));
}

/* Ends it; why (NULL: both sides did) also makes it a reset, so that nobody takes a refusal for an answer. */
static void end_visit(struct visit *visit, const char *why)
{
	static const struct linger reset = { .l_onoff = 1 };
	struct gate *gate = visit->gate;
	int fds[] = { visit->inside_fd, visit->outside_fd };

	report_closed(visit, why);
	if (event_initialized(&visit->writable))
		event_del(&visit->writable);
	relay_done(&visit->relay);
	for (size_t i = 0; why && i < ARRAY_SIZE(fds); i++)
		if (fds[i] >= 0)
			setsockopt(fds[i], SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
	close_fd(&visit->inside_fd);
	close_fd(&visit->outside_fd);
	gate->publishing.visits[visit->slot] = NULL;
	gate->publishing.visit_count--;
	free(visit);
	gate_check_stopped(gate);
}

static void on_relay_end(void *context, int errnum)
{
	end_visit(context, errnum == EDQUOT ? "network.limits" : errnum ? err_errno_name(errnum) : NULL);
}

static void on_relay_said(void *context)
{
	struct visit *visit = context;

	if (visit->gate->is_stopping)
		end_visit(visit, NULL);
}

static void start_relay(struct visit *visit)
{
	const struct relay_options options = { visit->inside_fd, visit->outside_fd, &visit->share, on_relay_end,
					       on_relay_said, visit };

	visit->state = VISIT_CONNECTED;
	if (relay_init(&visit->relay, visit->gate->base, &options) < 0) {
		end_visit(visit, "ENOMEM");
		return;
	}
	relay_start(&visit->relay, RELAY_IN);
	relay_start(&visit->relay, RELAY_OUT);
}

/*
 * ::1 of the inside first, then 127.0.0.1: a server may listen on either. In this order, since a socket that was used
 * for a mapped address is none of IPv6 any more (tcp_v6_connect()). 1: there; 0: under way.
 */
static int connect_inside(struct visit *visit)
{
	struct sockaddr_in6 inet6 = { .sin6_family = AF_INET6, .sin6_port = htons(visit->port) };
	struct sockaddr_in inet = { .sin_family = AF_INET, .sin_port = htons(visit->port),
				    .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	int family = AF_INET;
	socklen_t size = sizeof family;
	bool is_inet6 = getsockopt(visit->inside_fd, SOL_SOCKET, SO_DOMAIN, &family, &size) == 0 && family == AF_INET6;
	const void *name = is_inet6 ? (const void *)&inet6 : &inet;

	if (visit->is_second && !is_inet6)
		return -ECONNREFUSED;
	inet6.sin6_addr = (struct in6_addr)IN6ADDR_LOOPBACK_INIT;
	if (visit->is_second) {
		inet6.sin6_addr = (struct in6_addr){ .s6_addr = { [10] = 0xff, 0xff } };
		memcpy(inet6.sin6_addr.s6_addr + 12, &inet.sin_addr, sizeof inet.sin_addr);
		/* Gives up the source address of the first attempt. */
		if (connect(visit->inside_fd, &none, sizeof none) < 0)
			return -errno;
	}
	size = is_inet6 ? sizeof inet6 : sizeof inet;
	if (connect(visit->inside_fd, name, size) < 0 && errno != EINPROGRESS)
		return -errno;
	/* Over loopback it stands, or is refused, as soon as the call has returned: no turn of the loop for that. */
	if (connect(visit->inside_fd, name, size) == 0 || errno == EISCONN)
		return 1;
	if (errno != EALREADY)
		return -errno;
	return event_add(&visit->writable, &(struct timeval){ .tv_sec = CONNECT_SECONDS }) < 0 ? -ENOMEM : 0;
}

/* By what the attempt so far came to: as connect_inside(). */
static void proceed(struct visit *visit, int r)
{
	if (!visit->is_second && (r == -ECONNREFUSED || r == -EADDRNOTAVAIL || r == -ENETUNREACH)) {
		visit->is_second = true;
		r = connect_inside(visit);
	}
	if (r > 0)
		start_relay(visit);
	else if (r < 0)
		end_visit(visit, err_errno_name(-r));
}

static void on_writable(evutil_socket_t fd, short what, void *context)
{
	struct visit *visit = context;
	int errnum = ETIMEDOUT;
	socklen_t size = sizeof errnum;

	if (!(what & EV_TIMEOUT) && getsockopt(fd, SOL_SOCKET, SO_ERROR, &errnum, &size) < 0)
		errnum = errno;
	proceed(visit, errnum ? -errnum : 1);
}

void publishing_go(struct gate *gate, uint32_t id, int inside_fd)
{
	struct visit *visit = NULL;
	int r;

	for (size_t i = 0; i < PUBLISH_VISITS_MAX && !visit; i++)
		if (gate->publishing.visits[i] && gate->publishing.visits[i]->id == id)
			visit = gate->publishing.visits[i];
	if (!visit || visit->state != VISIT_ASKED) {
		close_fd(&inside_fd);
		return;
	}
	if (inside_fd < 0) {
		end_visit(visit, "refused");
		return;
	}
	visit->inside_fd = inside_fd;
	visit->state = VISIT_CONNECTING;
	r = event_assign(&visit->writable, gate->base, inside_fd, EV_WRITE, on_writable, visit) < 0
		    ? -ENOMEM : connect_inside(visit);
	proceed(visit, r);
}

static void read_source(const struct sockaddr_storage *from, struct gate_address *out)
{
	memset(out, 0, sizeof *out);
	if (from->ss_family == AF_INET6) {
		const struct sockaddr_in6 *inet6 = (const void *)from;

		memcpy(out->bytes, &inet6->sin6_addr, 16);
		out->port = ntohs(inet6->sin6_port);
	} else {
		const struct sockaddr_in *inet = (const void *)from;

		out->bytes[10] = out->bytes[11] = 0xff;
		memcpy(out->bytes + 12, &inet->sin_addr, 4);
		out->port = ntohs(inet->sin_port);
	}
}

/* Takes fd. Who finds every place taken is let go at once, as by a server that is full. */
static void begin_visit(struct published_port *port, int fd, const struct sockaddr_storage *from)
{
	struct publishing *publishing = &port->gate->publishing;
	struct visit *visit = publishing->visit_count < publishing->visits_max && !port->gate->is_stopping
				      ? calloc(1, sizeof *visit) : NULL;
	struct gate_arrived arrived = { .index = (uint32_t)(port - publishing->ports) };
	size_t slot = 0;

	if (!visit) {
		close_fd(&fd);
		return;
	}
	while (publishing->visits[slot])
		slot++;
	*visit = (struct visit){
		.gate = port->gate, .slot = slot, .id = ID_BIT | (publishing->next_id++ & (ID_BIT - 1)),
		.port = port->port, .inside_fd = FD_NONE, .outside_fd = fd, .share = { port->gate->quota, 0 },
		.started_ns = clock_monotonic_ns(),
	};
	publishing->visits[slot] = visit;
	publishing->visit_count++;
	arrived.id = visit->id;
	read_source(from, &arrived.source);
	box_link_send(&port->gate->link, gate_arrived_put(&port->gate->link.out, &arrived));
}

static void on_readable(evutil_socket_t fd, short what, void *context)
{
	struct published_port *port = context;

	(void)what;
	for (int i = 0; i < ACCEPT_BATCH; i++) {
		struct sockaddr_storage from;
		int accepted = gate_accept(port->gate, fd, &from);

		if (accepted < 0)
			return;
		begin_visit(port, accepted, &from);
	}
}

void publishing_init(struct publishing *publishing, struct gate *gate)
{
	for (size_t i = 0; i < NET_PUBLISH_MAX; i++)
		publishing->ports[i] = (struct published_port){ .gate = gate, .fd = FD_NONE };
}

int publishing_add(struct gate *gate, uint32_t index, uint16_t port, int fd)
{
	struct published_port *published = index < NET_PUBLISH_MAX ? &gate->publishing.ports[index] : NULL;

	if (!published || published->fd >= 0) {
		close(fd);
		return -EBADMSG;
	}
	published->port = port;
	published->fd = fd;
	published->readable = event_new(gate->base, fd, EV_READ | EV_PERSIST, on_readable, published);
	return published->readable && event_add(published->readable, NULL) == 0 ? 0 : -ENOMEM;
}

static void watch(struct gate *gate, bool watches)
{
	for (size_t i = 0; i < NET_PUBLISH_MAX; i++) {
		struct event *event = gate->publishing.ports[i].readable;

		if (event && (watches ? event_add(event, NULL) : event_del(event)) < 0)
			event_base_loopbreak(gate->base);
	}
}

static void stop(struct gate *gate)
{
	for (size_t i = 0; i < PUBLISH_VISITS_MAX; i++) {
		struct visit *visit = gate->publishing.visits[i];

		if (visit && (visit->state != VISIT_CONNECTED || visit->relay.halves[RELAY_OUT].is_closed))
			end_visit(visit, visit->state == VISIT_CONNECTED ? NULL : "the sandbox has ended");
	}
}

static void end(struct gate *gate)
{
	for (size_t i = 0; i < PUBLISH_VISITS_MAX; i++)
		if (gate->publishing.visits[i])
			end_visit(gate->publishing.visits[i], "the sandbox has ended");
	for (size_t i = 0; i < NET_PUBLISH_MAX; i++) {
		if (gate->publishing.ports[i].readable)
			event_free(gate->publishing.ports[i].readable);
		gate->publishing.ports[i].readable = NULL;
		close_fd(&gate->publishing.ports[i].fd);
	}
}

const struct gate_service publish_service = { .watch = watch, .stop = stop, .end = end };
