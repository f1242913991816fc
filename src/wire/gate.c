/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/gate.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "wire/layout.h"

bool gate_port_is_tls(uint16_t port)
{
	static const uint16_t ports[] = { 443, 465, 636, 853, 993, 995 };

	for (size_t i = 0; i < ARRAY_SIZE(ports); i++)
		if (ports[i] == port)
			return true;
	return false;
}

bool gate_address_parse(const char *text, uint8_t out[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	memcpy(out, mapped, sizeof mapped);
	return inet_pton(AF_INET, text, out + 12) == 1 || inet_pton(AF_INET6, text, out) == 1;
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

#define OPEN_ROWS(type)                                                                                   \
	LAYOUT(type, U32, open.id), LAYOUT(type, U32, open.pid), LAYOUT(type, TEXT, open.host), \
		LAYOUT_MAX(type, U32, open.port, UINT16_MAX)

static const struct layout start_rows[] = {
	LAYOUT(gate_start, BOOL, has_ipv6),
	LAYOUT(gate_start, TEXT_OR_NULL, test_hosts),
	LAYOUT(gate_start, TEXT_OR_NULL, proxy),
	LAYOUT(gate_start, TEXT_OR_NULL, no_proxy),
};

int gate_start_put(struct buf *out, const struct gate_start *from)
{
	return layout_put_frame(out, GATE_START, start_rows, ARRAY_SIZE(start_rows), from);
}

int gate_start_get(struct frame *frame, struct gate_start *to)
{
	return layout_get_frame(frame, start_rows, ARRAY_SIZE(start_rows), to);
}

static const struct layout route_rows[] = {
	LAYOUT(gate_route, U32, id),
	LAYOUT(gate_route, U32, pid),
	LAYOUT_MAX(gate_route, ARRAY, source.bytes, 16),
	LAYOUT(gate_route, U16, source.port),
	LAYOUT_MAX(gate_route, ARRAY, target.bytes, 16),
	LAYOUT(gate_route, U16, target.port),
	LAYOUT(gate_route, BOOL, is_granted),
	LAYOUT(gate_route, TEXT_OR_NULL, host),
};

int gate_route_put(struct buf *out, const struct gate_route *from)
{
	return layout_put_frame(out, GATE_ROUTE, route_rows, ARRAY_SIZE(route_rows), from);
}

int gate_route_get(struct frame *frame, struct gate_route *to)
{
	return layout_get_frame(frame, route_rows, ARRAY_SIZE(route_rows), to);
}

static const struct layout lookup_rows[] = {
	LAYOUT(gate_lookup, TEXT, name),
	LAYOUT(gate_lookup, U32, type),
	LAYOUT(gate_lookup, BOOL, is_allowed),
	LAYOUT(gate_lookup, U32, number),
	LAYOUT(gate_lookup, BOOL, is_paused),
};

int gate_lookup_put(struct buf *out, const struct gate_lookup *from)
{
	return layout_put_frame(out, GATE_LOOKUP, lookup_rows, ARRAY_SIZE(lookup_rows), from);
}

int gate_lookup_get(struct frame *frame, struct gate_lookup *to)
{
	int r = layout_get_frame(frame, lookup_rows, ARRAY_SIZE(lookup_rows), to);

	if (r == 0 && to->is_allowed && to->is_paused)
		return layout_refuse(frame, lookup_rows, ARRAY_SIZE(lookup_rows), to);
	return r;
}

static const struct layout open_rows[] = {
	LAYOUT(gate_open, U32, id),
	LAYOUT(gate_open, U32, pid),
	LAYOUT(gate_open, TEXT, host),
	LAYOUT_MAX(gate_open, U32, port, UINT16_MAX),
};

int gate_open_put(struct buf *out, const struct gate_open *from)
{
	return layout_put_frame(out, GATE_OPEN, open_rows, ARRAY_SIZE(open_rows), from);
}

int gate_open_get(struct frame *frame, struct gate_open *to)
{
	return layout_get_frame(frame, open_rows, ARRAY_SIZE(open_rows), to);
}

static const struct layout resolved_rows[] = {
	OPEN_ROWS(gate_resolved),
	LAYOUT(gate_resolved, TEXT, address),
};

int gate_resolved_put(struct buf *out, const struct gate_resolved *from)
{
	return layout_put_frame(out, GATE_RESOLVED, resolved_rows, ARRAY_SIZE(resolved_rows), from);
}

int gate_resolved_get(struct frame *frame, struct gate_resolved *to)
{
	return layout_get_frame(frame, resolved_rows, ARRAY_SIZE(resolved_rows), to);
}

static const struct layout refused_rows[] = {
	OPEN_ROWS(gate_refused),
	LAYOUT_MAX(gate_refused, U32, refusal, GATE_REFUSAL_COUNT - 1),
	LAYOUT(gate_refused, TEXT_OR_NULL, detail),
	LAYOUT(gate_refused, U32, limit),
};

int gate_refused_put(struct buf *out, const struct gate_refused *from)
{
	return layout_put_frame(out, GATE_REFUSED, refused_rows, ARRAY_SIZE(refused_rows), from);
}

int gate_refused_get(struct frame *frame, struct gate_refused *to)
{
	return layout_get_frame(frame, refused_rows, ARRAY_SIZE(refused_rows), to);
}

static const struct layout arrived_rows[] = {
	LAYOUT(gate_arrived, U32, id),
	LAYOUT(gate_arrived, U32, index),
	LAYOUT_MAX(gate_arrived, ARRAY, source.bytes, 16),
	LAYOUT(gate_arrived, U16, source.port),
};

int gate_arrived_put(struct buf *out, const struct gate_arrived *from)
{
	return layout_put_frame(out, GATE_ARRIVED, arrived_rows, ARRAY_SIZE(arrived_rows), from);
}

int gate_arrived_get(struct frame *frame, struct gate_arrived *to)
{
	return layout_get_frame(frame, arrived_rows, ARRAY_SIZE(arrived_rows), to);
}

static const struct layout limit_rows[] = {
	LAYOUT(gate_limit, TEXT_OR_NULL, rule),
	LAYOUT(gate_limit, U32, kind),
	LAYOUT(gate_limit, U64, amount),
};

int gate_limit_put(struct buf *out, const struct gate_limit *from)
{
	return layout_put_frame(out, GATE_LIMIT, limit_rows, ARRAY_SIZE(limit_rows), from);
}

int gate_limit_get(struct frame *frame, struct gate_limit *to)
{
	return layout_get_frame(frame, limit_rows, ARRAY_SIZE(limit_rows), to);
}

static const struct layout closed_rows[] = {
	OPEN_ROWS(gate_closed),
	LAYOUT(gate_closed, TEXT_OR_NULL, address),
	LAYOUT(gate_closed, U64, in_bytes),
	LAYOUT(gate_closed, U64, out_bytes),
	LAYOUT(gate_closed, U64, us),
	LAYOUT(gate_closed, TEXT_OR_NULL, why),
};

int gate_closed_put(struct buf *out, const struct gate_closed *from)
{
	return layout_put_frame(out, GATE_CLOSED, closed_rows, ARRAY_SIZE(closed_rows), from);
}

int gate_closed_get(struct frame *frame, struct gate_closed *to)
{
	return layout_get_frame(frame, closed_rows, ARRAY_SIZE(closed_rows), to);
}

static const struct layout ask_rows[] = {
	LAYOUT(gate_ask, U32, id),
	OPEN_ROWS(gate_ask),
	LAYOUT(gate_ask, TEXT, method),
	LAYOUT(gate_ask, TEXT, path),
};

int gate_ask_put(struct buf *out, const struct gate_ask *from)
{
	return layout_put_frame(out, GATE_ASK, ask_rows, ARRAY_SIZE(ask_rows), from);
}

int gate_ask_get(struct frame *frame, struct gate_ask *to)
{
	int r = layout_get_frame(frame, ask_rows, ARRAY_SIZE(ask_rows), to);

	return r == 0 && (!to->id) ? layout_refuse(frame, ask_rows, ARRAY_SIZE(ask_rows), to) : r;
}

static const struct layout answer_rows[] = {
	LAYOUT(gate_answer, U32, id),
	LAYOUT_MAX(gate_answer, U32, is_granted, 1),
	LAYOUT(gate_answer, TEXT, rule),
	LAYOUT(gate_answer, TEXT, reason),
	LAYOUT(gate_answer, TEXT, hint),
};

int gate_answer_put(struct buf *out, const struct gate_answer *from)
{
	return layout_put_frame(out, GATE_ANSWER, answer_rows, ARRAY_SIZE(answer_rows), from);
}

int gate_answer_get(struct frame *frame, struct gate_answer *to)
{
	return layout_get_frame(frame, answer_rows, ARRAY_SIZE(answer_rows), to);
}

static const struct layout request_rows[] = {
	OPEN_ROWS(gate_request),
	LAYOUT(gate_request, TEXT, method),
	LAYOUT(gate_request, TEXT, path),
	LAYOUT(gate_request, U32, climbs),
	LAYOUT(gate_request, U32, status),
	LAYOUT_MAX(gate_request, U32, replay, GATE_REPLAY_COUNT - 1),
	LAYOUT(gate_request, U64, in_bytes),
	LAYOUT(gate_request, U64, out_bytes),
	LAYOUT(gate_request, U64, us),
	LAYOUT(gate_request, TEXT_OR_NULL, problem),
	LAYOUT(gate_request, BOOL, is_limited),
	LAYOUT(gate_request, TEXT_OR_NULL, limit_rule),
	LAYOUT(gate_request, U32, asked),
	LAYOUT(gate_request, TEXT, secrets),
	LAYOUT(gate_request, TEXT_OR_NULL, leak.secret),
	LAYOUT(gate_request, TEXT_OR_NULL, leak.where),
};

void gate_request_put(struct buf *out, const struct gate_request *request)
{
	layout_put(out, request_rows, ARRAY_SIZE(request_rows), request);
	frame_put_u32(out, (uint32_t)request->leak.is_placeholder | (uint32_t)request->leak.is_refused << 1);
}

int gate_request_get(struct frame *frame, struct gate_request *ret_request)
{
	uint32_t flags;
	int r;

	if (!frame->error && frame->at == frame->size)
		return 0;
	r = layout_get(frame, request_rows, ARRAY_SIZE(request_rows), ret_request);
	flags = frame_get_u32(frame);
	ret_request->leak.is_placeholder = flags & 1;
	ret_request->leak.is_refused = flags & 2;
	return r < 0 || frame->error || !ret_request->leak.secret != !ret_request->leak.where || flags > 3 ? -EBADMSG
													     : 1;
}
