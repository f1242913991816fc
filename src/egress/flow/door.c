/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/flow/door.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "egress/flow/flow.h"
#include "egress/flow/service.h"
#include "os/clock.h"

/*
 * Connections to the door. The box made each on the caller's behalf, and sends a note with the source and where the
 * caller wanted to go; note and connection come by different roads, so that either may be first. A note that is wrong
 * or late only ever leads to another place that the policy allows: it is judged like every other. A connection without
 * a note was made around the box (TCP fast open), and goes nowhere.
 *
 * A note is sent when its connection stands. So while notes come the door is not watched: each of them takes its
 * connection out of the queue, where the door would have woken us once more for it, and too early. What nobody sent a
 * note for is taken out when none has come for a moment.
 */

enum { ACCEPT_BATCH = 32, STRAY_MS = 3000, MS_NS = 1000000, QUIET_MS = 20 };

static bool is_same(const struct gate_address *a, const struct gate_address *b)
{
	return a->port == b->port && memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

/* The note with this source, or NULL. */
static struct gate_route *take_route(struct gate *gate, const struct gate_address *source)
{
	uint64_t now_ns = clock_monotonic_ns();

	for (size_t i = 0; i < GATE_ROUTES_MAX; i++) {
		struct note *note = &gate->door.notes[i];

		if (note->until_ns <= now_ns || !is_same(&note->route.source, source))
			continue;
		note->until_ns = 0;
		/* The address may be another name's by now. */
		if (note->reused != host_names_count_reused(gate->names))
			note->route.is_granted = false;
		return &note->route;
	}
	return NULL;
}

/* What the box wrote down is another host than the one that the address means now: then we ask. */
static void check_granted(struct gate *gate, struct gate_route *route)
{
	const char *host = host_names_find(gate->names, route->target.bytes);

	if (route->host ? !host || strcmp(host, route->host) != 0 : host != NULL)
		route->is_granted = false;
	route->host = NULL;
}

static void drop_stray(struct gate *gate, size_t index)
{
	close_fd(&gate->door.strays[index].fd);
	gate->door.strays[index] = gate->door.strays[--gate->door.stray_count];
}

static void set_stray_timer(struct gate *gate)
{
	if (gate->door.stray_count && !event_pending(&gate->door.stray_timer, EV_TIMEOUT, NULL))
		event_add(&gate->door.stray_timer, &(struct timeval){ .tv_usec = STRAY_MS * 500 });
}

static void on_stray_timer(evutil_socket_t fd, short what, void *context)
{
	struct gate *gate = context;
	uint64_t now_ns = clock_monotonic_ns();

	(void)fd;
	(void)what;
	for (size_t i = 0; i < gate->door.stray_count;) {
		if (gate->door.strays[i].until_ns <= now_ns)
			drop_stray(gate, i);
		else
			i++;
	}
	set_stray_timer(gate);
}

static void add_stray(struct gate *gate, int fd, const struct gate_address *source)
{
	/* The oldest goes: whoever fills the list has made all of them. */
	if (gate->door.stray_count == GATE_STRAYS_MAX)
		drop_stray(gate, 0);
	gate->door.strays[gate->door.stray_count++] = (struct stray){
		.fd = fd, .source = *source, .until_ns = clock_monotonic_ns() + (uint64_t)STRAY_MS * MS_NS,
	};
	set_stray_timer(gate);
}

/* Of those that wait at this door; FD_NONE: none. */
static int accept_one(struct gate *gate, int door_fd, struct gate_address *ret_source)
{
	struct sockaddr_storage from;
	int accepted = gate_accept(gate, door_fd, &from);

	if (accepted >= 0)
		*ret_source = gate_address_of((const struct sockaddr *)&from);
	return accepted;
}

/* Takes fd. */
static void admit(struct gate *gate, int fd, const struct gate_address *source)
{
	struct gate_route *route = take_route(gate, source);

	if (route)
		flow_start(gate, fd, route);
	else
		add_stray(gate, fd, source);
}

static void on_door(evutil_socket_t fd, short what, void *context)
{
	(void)what;
	for (int i = 0; i < ACCEPT_BATCH; i++) {
		struct gate_address source;
		int accepted = accept_one(context, fd, &source);

		if (accepted < 0)
			return;
		admit(context, accepted, &source);
	}
}

static const enum gate_socket doors[] = { GATE_DOOR4, GATE_DOOR6 };

/* Takes the connections that wait, before the last look at them. */
static void accept_waiting(struct gate *gate)
{
	for (size_t i = 0; i < ARRAY_SIZE(doors); i++)
		if (gate->sockets[doors[i]] >= 0)
			on_door(gate->sockets[doors[i]], EV_READ, gate);
}

static void watch(struct gate *gate, bool watches)
{
	if (!gate->door.is_open || gate->door.is_watched == watches)
		return;
	gate->door.is_watched = watches;
	for (size_t i = 0; i < ARRAY_SIZE(doors); i++) {
		struct event *event = &gate->socket_events[doors[i]];

		if (gate->sockets[doors[i]] >= 0 && (watches ? event_add(event, NULL) : event_del(event)) < 0)
			event_base_loopbreak(gate->base);
	}
}

/* Whether notes still come is looked at now and then, instead of the timer being set anew for each. */
static void on_quiet(evutil_socket_t fd, short what, void *context)
{
	struct gate *gate = context;

	(void)fd;
	(void)what;
	if (gate->door.has_routed)
		event_add(&gate->door.quiet_timer, &(struct timeval){ .tv_usec = QUIET_MS * 1000 });
	else
		watch(gate, true);
	gate->door.has_routed = false;
}

static void expect_more(struct gate *gate)
{
	gate->door.has_routed = true;
	if (!gate->door.is_watched)
		return; /* or not open yet */
	watch(gate, false);
	event_add(&gate->door.quiet_timer, &(struct timeval){ .tv_usec = QUIET_MS * 1000 });
}

/* The connection with this source, which mostly is the first in the queue. FD_NONE: not there. */
static int find_connection(struct gate *gate, const struct gate_address *source)
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };
	bool is_mapped = memcmp(source->bytes, mapped, sizeof mapped) == 0;
	int door_fd = gate->sockets[is_mapped ? GATE_DOOR4 : GATE_DOOR6];

	for (size_t i = 0; i < gate->door.stray_count; i++)
		if (is_same(&gate->door.strays[i].source, source)) {
			int fd = take_fd(&gate->door.strays[i].fd);

			drop_stray(gate, i);
			return fd;
		}
	for (int i = 0; gate->door.is_open && i < ACCEPT_BATCH; i++) {
		struct gate_address found;
		int fd = accept_one(gate, door_fd, &found);

		if (fd < 0 || is_same(&found, source))
			return fd;
		admit(gate, fd, &found);
	}
	return FD_NONE;
}

void door_route(struct gate *gate, struct gate_route *route)
{
	int fd;

	check_granted(gate, route);
	expect_more(gate);
	fd = find_connection(gate, &route->source);
	if (fd >= 0) {
		flow_start(gate, fd, route);
		return;
	}
	(void)take_route(gate, &route->source);
	gate->door.notes[gate->door.next_note++ % GATE_ROUTES_MAX] = (struct note){
		.route = *route,
		.until_ns = clock_monotonic_ns() + (uint64_t)STRAY_MS * MS_NS,
		.reused = host_names_count_reused(gate->names),
	};
}

static int start(struct gate *gate)
{
	if (evtimer_assign(&gate->door.stray_timer, gate->base, on_stray_timer, gate) < 0 ||
	    evtimer_assign(&gate->door.quiet_timer, gate->base, on_quiet, gate) < 0)
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(doors); i++) {
		struct event *event = &gate->socket_events[doors[i]];

		if (gate->sockets[doors[i]] < 0)
			continue;
		/* Accepted sockets inherit it: what comes in small pieces is handed on in small pieces. */
		setsockopt(gate->sockets[doors[i]], IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
		/* Else a look at the stream would leave out a byte that is marked as urgent, until another one is: what
		 * is judged would not be what is sent. */
		setsockopt(gate->sockets[doors[i]], SOL_SOCKET, SO_OOBINLINE, &(int){ 1 }, sizeof(int));
		if (event_assign(event, gate->base, gate->sockets[doors[i]], EV_READ | EV_PERSIST, on_door, gate) < 0)
			return -EINVAL;
	}
	gate->door.is_open = true;
	watch(gate, true);
	return 0;
}

static void end(struct gate *gate)
{
	while (gate->door.stray_count)
		drop_stray(gate, 0);
}

const struct gate_service door_service = { .start = start, .watch = watch, .stop = accept_waiting, .end = end };
