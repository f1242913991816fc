/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

#include "egress/dns/dns.h"
#include "egress/flow/service.h"
#include "os/clock.h"
#include "policy/decide.h"
#include "policy/synthetic.h"

/*
 * The DNS server inside. A name that the policy allows has a synthetic address from now on; nobody outside is asked.
 * So has one that a person is asked about, once a connection to it comes: the address says nothing about the host.
 * Any other name does not exist, and nobody outside learns that it was asked for: a look-up carries no byte out.
 */

enum { UDP_BATCH = 32, TCP_IDLE_SECONDS = 10, LENGTH_SIZE = 2 };

/* One connection to port 53. */
struct tcp_query {
	struct gate *gate;
	size_t slot;
	int fd;
	struct event readable;
	size_t size;
	uint8_t bytes[LENGTH_SIZE + DNS_QUERY_MAX];
};

static bool is_localhost(const char *name)
{
	size_t length = strlen(name), suffix = strlen(".localhost");

	return strcmp(name, "localhost") == 0 || (length > suffix && strcmp(name + length - suffix, ".localhost") == 0);
}

/* RFC 6761 6.3: the sandbox's own loopback. */
static void answer_localhost(const struct dns_query *query, struct dns_answer *answer)
{
	static const uint8_t loopback4[4] = { 127, 0, 0, 1 }, loopback6[16] = { [15] = 1 };

	answer->type = query->type == DNS_A || query->type == DNS_AAAA ? query->type : 0;
	if (query->type == DNS_A)
		memcpy(answer->address, loopback4, sizeof loopback4);
	else
		memcpy(answer->address, loopback6, sizeof loopback6);
}

static bool answer_reverse(struct gate *gate, const struct dns_query *query, struct dns_answer *answer)
{
	uint8_t address[16];

	if (query->type != DNS_PTR || !dns_reverse_parse(query->name, address))
		return false;
	answer->host = host_names_find(gate->names, address);
	answer->type = DNS_PTR;
	answer->code = answer->host ? DNS_OK : DNS_NXDOMAIN;
	return true;
}

static void answer_host(struct gate *gate, const struct dns_query *query, struct dns_answer *answer)
{
	struct action action = { .kind = ACTION_NET_DNS, .subject = query->name };
	bool is_paused = gate->paused_until_ns > clock_monotonic_ns();
	bool is_allowed = !is_paused && query->is_host_name &&
			  gate_may_open(gate, policy_decide(gate->policy, &action).verdict);
	struct gate_lookup lookup = { .name = query->name, .type = query->type, .is_allowed = is_allowed,
				      .is_paused = is_paused };
	bool wants6 = query->type == DNS_AAAA && gate->sockets[GATE_DOOR6] >= 0;
	/* Everything else about a name (HTTPS and SVCB among it, which carry keys for hidden server names) is empty. */
	bool has_address = is_allowed && (query->type == DNS_A || wants6);
	uint8_t address4[4], address6[16];

	/* A name that does not exist would be remembered longer than the pause lasts. */
	answer->code = is_allowed ? DNS_OK : is_paused ? DNS_REFUSED : DNS_NXDOMAIN;
	if (has_address && host_names_assign(gate->names, query->name, &lookup.number) < 0)
		answer->code = DNS_SERVFAIL;
	box_link_send(&gate->link, gate_lookup_put(&gate->link.out, &lookup));
	if (!lookup.number)
		return;
	synthetic_make(lookup.number, address4, address6);
	answer->type = query->type;
	memcpy(answer->address, query->type == DNS_A ? address4 : address6, query->type == DNS_A ? 4 : 16);
}

/* 0: no answer. */
static size_t serve(struct gate *gate, const uint8_t *message, size_t size, uint8_t out[DNS_ANSWER_MAX])
{
	struct dns_answer answer = { 0 };
	struct dns_query query;
	int r = dns_query_parse(message, size, &query);

	if (r < 0)
		return 0;
	answer.code = (enum dns_code)r;
	if (r == 0 && is_localhost(query.name))
		answer_localhost(&query, &answer);
	else if (r == 0 && !answer_reverse(gate, &query, &answer))
		answer_host(gate, &query, &answer);
	return dns_answer_format(&query, &answer, out);
}

static void on_udp(evutil_socket_t fd, short what, void *context)
{
	uint8_t message[DNS_QUERY_MAX + 1], out[DNS_ANSWER_MAX];

	(void)what;
	for (int i = 0; i < UDP_BATCH; i++) {
		struct sockaddr_storage from;
		socklen_t from_size = sizeof from;
		ssize_t n = recvfrom(fd, message, sizeof message, MSG_DONTWAIT, (struct sockaddr *)&from, &from_size);
		size_t size;

		if (n < 0)
			return;
		size = serve(context, message, (size_t)n, out);
		/* Who does not take the answer asks again. */
		if (size)
			(void)!sendto(fd, out, size, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&from, from_size);
	}
}

static void end_query(struct tcp_query *query)
{
	event_del(&query->readable);
	close_fd(&query->fd);
	query->gate->queries[query->slot] = NULL;
	free(query);
}

/* Answers what is whole. False: the connection must end. */
static bool serve_stream(struct tcp_query *query)
{
	while (query->size >= LENGTH_SIZE) {
		size_t length = (size_t)query->bytes[0] << 8 | query->bytes[1], size;
		uint8_t out[LENGTH_SIZE + DNS_ANSWER_MAX];

		if (length > DNS_QUERY_MAX)
			return false;
		if (query->size < LENGTH_SIZE + length)
			break;
		size = serve(query->gate, query->bytes + LENGTH_SIZE, length, out + LENGTH_SIZE);
		out[0] = (uint8_t)(size >> 8);
		out[1] = (uint8_t)size;
		/* Answers are short: one that does not fit belongs to somebody who does not read. */
		if (!size || send(query->fd, out, LENGTH_SIZE + size, MSG_DONTWAIT | MSG_NOSIGNAL) !=
				     (ssize_t)(LENGTH_SIZE + size))
			return false;
		query->size -= LENGTH_SIZE + length;
		memmove(query->bytes, query->bytes + LENGTH_SIZE + length, query->size);
	}
	return true;
}

static void on_stream(evutil_socket_t fd, short what, void *context)
{
	struct tcp_query *query = context;
	ssize_t n;

	if (what & EV_TIMEOUT) {
		end_query(query);
		return;
	}
	n = recv(fd, query->bytes + query->size, sizeof query->bytes - query->size, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		query->size += (size_t)n;
	if (n <= 0 || !serve_stream(query))
		end_query(query);
}

static void on_tcp(evutil_socket_t fd, short what, void *context)
{
	struct gate *gate = context;
	struct sockaddr_storage from;
	cleanup_fd int accepted = gate_accept(gate, fd, &from);
	struct tcp_query *query;
	size_t slot = 0;

	(void)what;
	while (slot < GATE_TCP_QUERIES_MAX && gate->queries[slot])
		slot++;
	if (accepted < 0 || slot == GATE_TCP_QUERIES_MAX)
		return;
	query = malloc(sizeof *query);
	if (!query)
		return;
	query->gate = gate;
	query->slot = slot;
	query->size = 0;
	query->fd = take_fd(&accepted);
	gate->queries[slot] = query;
	if (event_assign(&query->readable, gate->base, query->fd, EV_READ | EV_PERSIST, on_stream, query) < 0 ||
	    event_priority_set(&query->readable, 0) < 0 ||
	    event_add(&query->readable, &(struct timeval){ .tv_sec = TCP_IDLE_SECONDS }) < 0)
		end_query(query);
}

static int listen_to(struct gate *gate, enum gate_socket which, event_callback_fn called)
{
	struct event *event = &gate->socket_events[which];

	if (event_assign(event, gate->base, gate->sockets[which], EV_READ | EV_PERSIST, called, gate) < 0 ||
	    event_priority_set(event, 0) < 0 ||
	    event_add(event, NULL) < 0)
		return -EINVAL;
	return 0;
}

static int start(struct gate *gate)
{
	int r = listen_to(gate, GATE_DNS_UDP, on_udp);

	return r < 0 ? r : listen_to(gate, GATE_DNS_TCP, on_tcp);
}

static void watch(struct gate *gate, bool watches)
{
	struct event *event = &gate->socket_events[GATE_DNS_TCP];

	/* Ports are published before it starts. */
	if (event_initialized(event) && (watches ? event_add(event, NULL) : event_del(event)) < 0)
		event_base_loopbreak(gate->base);
}

static void end(struct gate *gate)
{
	for (size_t i = 0; i < GATE_TCP_QUERIES_MAX; i++)
		if (gate->queries[i])
			end_query(gate->queries[i]);
}

const struct gate_service dns_service = { .start = start, .watch = watch, .end = end };
