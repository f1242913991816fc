/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/gate.h"

#include <arpa/inet.h>
#include <string.h>

bool gate_port_is_tls(uint16_t port)
{
	static const uint16_t ports[] = { 443, 465, 636, 853, 993, 995 };

	for (size_t i = 0; i < ARRAY_SIZE(ports); i++)
		if (ports[i] == port)
			return true;
	return false;
}

struct gate_address gate_address_of(const struct sockaddr *from)
{
	struct gate_address address = { 0 };

	if (from->sa_family == AF_INET) {
		const struct sockaddr_in *inet = (const void *)from;

		address.bytes[10] = address.bytes[11] = 0xff;
		memcpy(address.bytes + 12, &inet->sin_addr, 4);
		address.port = ntohs(inet->sin_port);
	} else {
		const struct sockaddr_in6 *inet6 = (const void *)from;

		memcpy(address.bytes, &inet6->sin6_addr, 16);
		address.port = ntohs(inet6->sin6_port);
	}
	return address;
}

int gate_start_put(struct buf *out, const struct gate_start *start)
{
	frame_begin(out, GATE_START);
	frame_put_u32(out, start->has_ipv6);
	frame_put_string(out, start->test_hosts);
	frame_put_string(out, start->proxy);
	frame_put_string(out, start->no_proxy);
	return frame_end(out);
}

int gate_start_get(struct frame *frame, struct gate_start *ret_start)
{
	uint32_t has_ipv6 = frame_get_u32(frame);
	struct gate_start start = { .has_ipv6 = has_ipv6, .test_hosts = frame_get_string(frame) };

	start.proxy = frame_get_string(frame);
	start.no_proxy = frame_get_string(frame);
	if (frame_finish(frame) < 0 || has_ipv6 > 1)
		return -EBADMSG;
	*ret_start = start;
	return 0;
}

static void put_address(struct buf *out, const struct gate_address *address)
{
	frame_put_bytes(out, address->bytes, sizeof address->bytes);
	frame_put_u32(out, address->port);
}

static bool get_address(struct frame *frame, struct gate_address *address)
{
	size_t size;
	const void *bytes = frame_get_bytes(frame, &size);
	uint32_t port = frame_get_u32(frame);

	if (!bytes || size != sizeof address->bytes || port > UINT16_MAX)
		return false;
	memcpy(address->bytes, bytes, size);
	address->port = (uint16_t)port;
	return true;
}

int gate_route_put(struct buf *out, const struct gate_route *route)
{
	frame_begin(out, GATE_ROUTE);
	frame_put_u32(out, route->id);
	frame_put_u32(out, route->pid);
	put_address(out, &route->source);
	put_address(out, &route->target);
	frame_put_u32(out, route->is_granted);
	frame_put_string(out, route->host);
	return frame_end(out);
}

int gate_route_get(struct frame *frame, struct gate_route *ret_route)
{
	struct gate_route route = { .id = frame_get_u32(frame) };
	uint32_t is_granted;
	bool is_whole;

	route.pid = frame_get_u32(frame);
	is_whole = get_address(frame, &route.source) && get_address(frame, &route.target);
	is_granted = frame_get_u32(frame);
	route.is_granted = is_granted;
	route.host = frame_get_string(frame);
	if (frame_finish(frame) < 0 || !is_whole || is_granted > 1)
		return -EBADMSG;
	*ret_route = route;
	return 0;
}

int gate_lookup_put(struct buf *out, const struct gate_lookup *lookup)
{
	frame_begin(out, GATE_LOOKUP);
	frame_put_string(out, lookup->name);
	frame_put_u32(out, lookup->type);
	frame_put_u32(out, lookup->is_allowed);
	frame_put_u32(out, lookup->number);
	frame_put_u32(out, lookup->is_paused);
	return frame_end(out);
}

int gate_lookup_get(struct frame *frame, struct gate_lookup *ret_lookup)
{
	struct gate_lookup lookup = { .name = frame_get_string(frame) };
	uint32_t is_allowed, is_paused;

	lookup.type = frame_get_u32(frame);
	is_allowed = frame_get_u32(frame);
	lookup.is_allowed = is_allowed;
	lookup.number = frame_get_u32(frame);
	is_paused = frame_get_u32(frame);
	lookup.is_paused = is_paused;
	if (frame_finish(frame) < 0 || !lookup.name || is_allowed + is_paused > 1)
		return -EBADMSG;
	*ret_lookup = lookup;
	return 0;
}

static void put_open(struct buf *out, const struct gate_open *open)
{
	frame_put_u32(out, open->id);
	frame_put_u32(out, open->pid);
	frame_put_string(out, open->host);
	frame_put_u32(out, open->port);
}

static bool get_open(struct frame *frame, struct gate_open *open)
{
	open->id = frame_get_u32(frame);
	open->pid = frame_get_u32(frame);
	open->host = frame_get_string(frame);
	open->port = frame_get_u32(frame);
	return open->host && open->port <= UINT16_MAX;
}

int gate_open_put(struct buf *out, const struct gate_open *open)
{
	frame_begin(out, GATE_OPEN);
	put_open(out, open);
	return frame_end(out);
}

int gate_open_get(struct frame *frame, struct gate_open *ret_open)
{
	struct gate_open open;
	bool is_whole = get_open(frame, &open);

	if (frame_finish(frame) < 0 || !is_whole)
		return -EBADMSG;
	*ret_open = open;
	return 0;
}

int gate_refused_put(struct buf *out, const struct gate_refused *refused)
{
	frame_begin(out, GATE_REFUSED);
	put_open(out, &refused->open);
	frame_put_u32(out, refused->refusal);
	frame_put_string(out, refused->detail);
	frame_put_u32(out, refused->limit);
	return frame_end(out);
}

int gate_refused_get(struct frame *frame, struct gate_refused *ret_refused)
{
	struct gate_refused refused;
	bool is_whole = get_open(frame, &refused.open);
	uint32_t refusal = frame_get_u32(frame);

	refused.refusal = (enum gate_refusal)refusal;
	refused.detail = frame_get_string(frame);
	refused.limit = frame_get_u32(frame);
	if (frame_finish(frame) < 0 || !is_whole || refusal >= GATE_REFUSAL_COUNT)
		return -EBADMSG;
	*ret_refused = refused;
	return 0;
}

int gate_arrived_put(struct buf *out, const struct gate_arrived *arrived)
{
	frame_begin(out, GATE_ARRIVED);
	frame_put_u32(out, arrived->id);
	frame_put_u32(out, arrived->index);
	put_address(out, &arrived->source);
	return frame_end(out);
}

int gate_arrived_get(struct frame *frame, struct gate_arrived *ret_arrived)
{
	struct gate_arrived arrived = { .id = frame_get_u32(frame) };
	bool is_whole;

	arrived.index = frame_get_u32(frame);
	is_whole = get_address(frame, &arrived.source);
	if (frame_finish(frame) < 0 || !is_whole)
		return -EBADMSG;
	*ret_arrived = arrived;
	return 0;
}

int gate_limit_put(struct buf *out, const struct gate_limit *limit)
{
	frame_begin(out, GATE_LIMIT);
	frame_put_string(out, limit->rule);
	frame_put_u32(out, limit->kind);
	frame_put_u64(out, limit->amount);
	return frame_end(out);
}

int gate_limit_get(struct frame *frame, struct gate_limit *ret_limit)
{
	struct gate_limit limit = { .rule = frame_get_string(frame) };

	limit.kind = frame_get_u32(frame);
	limit.amount = frame_get_u64(frame);
	if (frame_finish(frame) < 0)
		return -EBADMSG;
	*ret_limit = limit;
	return 0;
}

int gate_closed_put(struct buf *out, const struct gate_closed *closed)
{
	frame_begin(out, GATE_CLOSED);
	put_open(out, &closed->open);
	frame_put_string(out, closed->address);
	frame_put_u64(out, closed->in_bytes);
	frame_put_u64(out, closed->out_bytes);
	frame_put_u64(out, closed->us);
	frame_put_string(out, closed->why);
	return frame_end(out);
}

int gate_closed_get(struct frame *frame, struct gate_closed *ret_closed)
{
	struct gate_closed closed;
	bool is_whole = get_open(frame, &closed.open);

	closed.address = frame_get_string(frame);
	closed.in_bytes = frame_get_u64(frame);
	closed.out_bytes = frame_get_u64(frame);
	closed.us = frame_get_u64(frame);
	closed.why = frame_get_string(frame);
	if (frame_finish(frame) < 0 || !is_whole)
		return -EBADMSG;
	*ret_closed = closed;
	return 0;
}

int gate_ask_put(struct buf *out, const struct gate_ask *ask)
{
	frame_begin(out, GATE_ASK);
	frame_put_u32(out, ask->id);
	put_open(out, &ask->open);
	frame_put_string(out, ask->method);
	frame_put_string(out, ask->path);
	return frame_end(out);
}

int gate_ask_get(struct frame *frame, struct gate_ask *ret_ask)
{
	struct gate_ask ask = { .id = frame_get_u32(frame) };
	bool is_whole = get_open(frame, &ask.open);

	ask.method = frame_get_string(frame);
	ask.path = frame_get_string(frame);
	if (frame_finish(frame) < 0 || !is_whole || !ask.id || !ask.method || !ask.path)
		return -EBADMSG;
	*ret_ask = ask;
	return 0;
}

int gate_answer_put(struct buf *out, const struct gate_answer *answer)
{
	frame_begin(out, GATE_ANSWER);
	frame_put_u32(out, answer->id);
	frame_put_u32(out, answer->is_granted);
	frame_put_string(out, answer->rule);
	frame_put_string(out, answer->reason);
	frame_put_string(out, answer->hint);
	return frame_end(out);
}

int gate_answer_get(struct frame *frame, struct gate_answer *ret_answer)
{
	struct gate_answer answer = { .id = frame_get_u32(frame) };

	answer.is_granted = frame_get_u32(frame);
	answer.rule = frame_get_string(frame);
	answer.reason = frame_get_string(frame);
	answer.hint = frame_get_string(frame);
	if (frame_finish(frame) < 0 || answer.is_granted > 1 || !answer.rule || !answer.reason || !answer.hint)
		return -EBADMSG;
	*ret_answer = answer;
	return 0;
}

void gate_request_put(struct buf *out, const struct gate_request *request)
{
	put_open(out, &request->open);
	frame_put_string(out, request->method);
	frame_put_string(out, request->path);
	frame_put_u32(out, request->climbs);
	frame_put_u32(out, request->status);
	frame_put_u32(out, request->replay);
	frame_put_u64(out, request->in_bytes);
	frame_put_u64(out, request->out_bytes);
	frame_put_u64(out, request->us);
	frame_put_string(out, request->problem);
	frame_put_u32(out, request->is_limited);
	frame_put_string(out, request->limit_rule);
	frame_put_u32(out, request->asked);
	frame_put_string(out, request->secrets);
	frame_put_string(out, request->leak.secret);
	frame_put_string(out, request->leak.where);
	frame_put_u32(out, (uint32_t)request->leak.is_placeholder | (uint32_t)request->leak.is_refused << 1);
}

int gate_request_get(struct frame *frame, struct gate_request *ret_request)
{
	struct gate_request request;
	bool is_whole;
	uint32_t flags, outcome;

	if (!frame->error && frame->at == frame->size)
		return 0;
	is_whole = get_open(frame, &request.open);
	request.method = frame_get_string(frame);
	request.path = frame_get_string(frame);
	request.climbs = frame_get_u32(frame);
	request.status = frame_get_u32(frame);
	request.replay = frame_get_u32(frame);
	request.in_bytes = frame_get_u64(frame);
	request.out_bytes = frame_get_u64(frame);
	request.us = frame_get_u64(frame);
	request.problem = frame_get_string(frame);
	outcome = frame_get_u32(frame);
	request.is_limited = outcome & 1;
	request.limit_rule = frame_get_string(frame);
	request.asked = frame_get_u32(frame);
	request.secrets = frame_get_string(frame);
	request.leak.secret = frame_get_string(frame);
	request.leak.where = frame_get_string(frame);
	flags = frame_get_u32(frame);
	request.leak.is_placeholder = flags & 1;
	request.leak.is_refused = flags & 2;
	if (frame->error || !is_whole || !request.method || !request.path || !request.secrets ||
	    !request.leak.secret != !request.leak.where || flags > 3 ||
	    outcome > 1 || request.replay >= GATE_REPLAY_COUNT)
		return -EBADMSG;
	*ret_request = request;
	return 1;
}
