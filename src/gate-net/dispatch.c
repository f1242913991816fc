/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-net/link.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "gate-net/denial.h"
#include "gate-net/gate.h"
#include "gate-net/log.h"
#include "gate-net/policy-change.h"
#include "gate-net/publish.h"
#include "os/fd.h"
#include "supervise/run.h"
#include "wire/gate.h"

/*
 * What the gate says (wire/gate.h). Hostile bytes went through it, so each frame has its state, size and number of
 * descriptors, and whether something may go out is decided here again.
 */

static int on_measured(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct net_gate *gate = context;
	uint64_t in_bytes = frame_get_u64(frame), out_bytes = frame_get_u64(frame);

	if (frame_finish(frame) < 0 || !gate->counts.is_measuring)
		return -EBADMSG;
	gate->counts.is_measuring = false;
	gate->counts.moved_in = in_bytes;
	gate->counts.moved_out = out_bytes;
	return 0;
}

static int on_ready(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct net_gate *gate = context;

	if (frame_finish(frame) < 0)
		return -EBADMSG;
	peer_serves(&gate->peer);
	return 0;
}

static int on_lookup(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct gate_lookup lookup;
	struct net_gate *gate = context;

	if (gate_lookup_get(frame, &lookup) < 0)
		return -EBADMSG;
	gate->counts.lookups++;
	if (lookup.number)
		gate_names_learn(&gate->names, lookup.number, lookup.name);
	return gate_log_lookup(gate, &lookup);
}

static int on_open(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct net_gate *gate = context;
	struct gate_open open;
	int granted;

	if (gate_open_get(frame, &open) < 0)
		return -EBADMSG;
	granted = gate_log_open(gate, &open);
	if (granted == GATE_LOG_WAITS)
		return 0;
	if (granted < 0)
		return granted;
	gate_answer(gate, open.id, granted);
	return 0;
}

static int on_resolved(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct gate_resolved resolved;
	struct net_gate *gate = context;
	int granted;

	if (gate_resolved_get(frame, &resolved) < 0)
		return -EBADMSG;
	granted = gate_log_resolved(gate, &resolved);
	if (granted == GATE_LOG_WAITS)
		return 0;
	if (granted < 0)
		return granted;
	gate_answer(gate, resolved.open.id, granted);
	return 0;
}

static int on_refused(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct gate_refused refused;

	return gate_refused_get(frame, &refused) < 0 ? -EBADMSG : gate_log_refused(context, &refused);
}

static int on_closed(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct gate_closed closed;
	struct net_gate *gate = context;

	if (gate_closed_get(frame, &closed) < 0)
		return -EBADMSG;
	gate->counts.connections++;
	gate->counts.in_bytes += closed.in_bytes;
	gate->counts.out_bytes += closed.out_bytes;
	return gate_log_closed(gate, &closed);
}

static int on_requests(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct gate_request request;
	struct net_gate *gate = context;
	int r;

	while ((r = gate_request_get(frame, &request)) > 0) {
		gate->counts.requests++;
		gate->counts.replayed += request.replay == GATE_REPLAYED;
		r = gate_log_request(gate, &request);
		if (r < 0)
			return r;
	}
	return r;
}

static int on_limit(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct gate_limit limit;

	return gate_limit_get(frame, &limit) < 0 ? -EBADMSG : gate_log_limit(context, &limit);
}

static int on_ask(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct gate_ask ask;

	return gate_ask_get(frame, &ask) < 0 ? -EBADMSG : gate_log_ask(context, &ask);
}

/* A frame that is nothing but the number of something that waits. */
static int hear_number(void *context, struct frame *frame, void (*handle)(struct net_gate *gate, uint32_t id))
{
	uint32_t id = frame_get_u32(frame);

	if (frame_finish(frame) < 0)
		return -EBADMSG;
	handle(context, id);
	return 0;
}

static int on_forget(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	return hear_number(context, frame, gate_questions_forget);
}

static int on_left(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	return hear_number(context, frame, gate_questions_left);
}

static int on_arrived(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	cleanup_fd int inside_fd = FD_NONE;
	struct gate_arrived arrived;
	struct net_gate *gate = context;
	int r = gate_arrived_get(frame, &arrived);

	if (r == 0)
		r = publish_judge(gate, &arrived, &inside_fd);
	if (r < 0)
		return r;
	frame_begin(&gate->run->out, GATE_INSIDE);
	frame_put_u32(&gate->run->out, arrived.id);
	gate_send(gate, frame_end(&gate->run->out), &inside_fd, (size_t)r);
	return 0;
}

static int on_policy_set(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	uint32_t errnum = frame_get_u32(frame), ended = frame_get_u32(frame);

	return frame_finish(frame) < 0 || errnum > INT16_MAX ? -EBADMSG
							     : policy_change_conclude(context, (int)errnum, ended);
}

static int on_broken(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	size_t size;
	const void *bytes = frame_get_bytes(frame, &size);
	struct err told;

	if (frame_finish(frame) < 0 || !bytes || size != sizeof told)
		return -EBADMSG;
	memcpy(&told, bytes, sizeof told);
	told.message[sizeof told.message - 1] = 0;
	gate_mark_lost(context, told.message);
	return 0;
}

enum { STARTING = PEER_BIT(STARTING), SERVING = PEER_BIT(SERVING) };

const struct frame_rule gate_rules[GATE_RULE_COUNT] = {
	{ GATE_READY, STARTING, 64, 0, 0, on_ready },       { GATE_LOOKUP, SERVING, 512, 0, 0, on_lookup },
	{ GATE_OPEN, SERVING, 512, 0, 0, on_open },         { GATE_REFUSED, SERVING, 1024, 0, 0, on_refused },
	{ GATE_CLOSED, SERVING, 1024, 0, 0, on_closed },    { GATE_LIMIT, SERVING, 512, 0, 0, on_limit },
	{ GATE_BROKEN, STARTING | SERVING, 2048, 0, 0, on_broken },
	{ GATE_REQUESTS, SERVING, FRAME_MESSAGE_MAX, 0, 0, on_requests },
	{ GATE_POLICY_SET, SERVING, 64, 0, 0, on_policy_set },
	{ GATE_ARRIVED, SERVING, 128, 0, 0, on_arrived },   { GATE_MEASURED, SERVING, 64, 0, 0, on_measured },
	{ GATE_RESOLVED, SERVING, 512, 0, 0, on_resolved },
	{ GATE_LEFT, SERVING, 64, 0, 0, on_left },          { GATE_ASK, SERVING, GATE_REQUEST_MAX, 0, 0, on_ask },
	{ GATE_FORGET, SERVING, 64, 0, 0, on_forget },
};
