/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/flow/dispatch.h"

#include <poll.h>

#include "egress/flow/door.h"
#include "egress/flow/flow.h"
#include "egress/flow/publish.h"
#include "egress/flow/requests.h"
#include "egress/flow/sealed.h"
#include "egress/flow/service.h"
#include "os/clock.h"
#include "policy/certificate-files.h"
#include "policy/decide.h"

enum gate_state { GATE_NEW, GATE_SERVING };

enum { BOX_BATCH = 256 };

static int on_start(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct gate *gate = context;
	struct gate_start start;
	int r = gate_start_get(frame, &start);

	if (r < 0 || fd_count != (start.has_ipv6 ? 4u : 3u) || (gate->authority.ca && !gate->authority.bundle))
		return -EBADMSG;
	for (size_t i = 0; i < fd_count; i++)
		gate->sockets[i] = take_fd(&fds[i]);
	r = dialer_set_test_hosts(gate->dialer, start.test_hosts);
	if (r == 0) {
		r = dialer_set_proxy(gate->dialer, start.proxy, start.no_proxy);
		if (r < 0)
			gate->hearing.failure = "HTTPS_PROXY is not of the form http://[USER:PASSWORD@]HOST[:PORT]";
	}
	for (const struct gate_service *const *service = gate->services; r == 0 && *service; service++)
		r = (*service)->start ? (*service)->start(gate) : 0;
	gate->hearing.state = GATE_SERVING;
	return r;
}

static int on_introduce(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct gate *gate = context;
	uint32_t wanted = frame_get_u32(frame);
	int files[CERTIFICATE_FILE_COUNT];
	size_t taken = 1;
	int r;

	for (int file = 0; file < CERTIFICATE_FILE_COUNT; file++)
		files[file] = wanted & 1u << file && taken < fd_count ? fds[taken++] : FD_NONE;
	if (frame_finish(frame) < 0 || wanted >> CERTIFICATE_FILE_COUNT || taken != fd_count || !gate->authority.ca ||
	    gate->authority.bundle)
		return -EBADMSG;
	r = authority_introduce(&gate->authority, fds[0], files);
	if (r == 0)
		box_link_send_plain(&gate->link, GATE_INTRODUCED);
	return r;
}

static int on_route(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct gate_route route;
	int r = gate_route_get(frame, &route);

	(void)fds;
	(void)fd_count;
	if (r == 0)
		door_route(context, &route);
	return r;
}

static int on_go(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	uint32_t id = frame_get_u32(frame), is_granted = frame_get_u32(frame);

	(void)fds;
	(void)fd_count;
	if (frame_finish(frame) < 0)
		return -EBADMSG;
	flow_go(context, id, is_granted);
	return 0;
}

static int on_publish(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	uint32_t index = frame_get_u32(frame), port = frame_get_u32(frame);

	(void)fd_count;
	if (frame_finish(frame) < 0 || !port || port > UINT16_MAX)
		return -EBADMSG;
	return publishing_add(context, index, (uint16_t)port, take_fd(&fds[0]));
}

static int on_inside(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	uint32_t id = frame_get_u32(frame);

	if (frame_finish(frame) < 0)
		return -EBADMSG;
	publishing_go(context, id, fd_count ? take_fd(&fds[0]) : FD_NONE);
	return 0;
}

static int on_pause(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	uint64_t ms = frame_get_u64(frame);
	struct gate *gate = context;

	(void)fds;
	(void)fd_count;
	if (frame_finish(frame) < 0 || ms > UINT32_MAX)
		return -EBADMSG;
	gate->paused_until_ns = clock_monotonic_ns() + ms * 1000000;
	return 0;
}

static int on_measure(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct gate *gate = context;

	(void)fds;
	(void)fd_count;
	if (frame_finish(frame) < 0)
		return -EBADMSG;
	frame_begin(&gate->link.out, GATE_MEASURED);
	frame_put_u64(&gate->link.out, quota_used(gate->quota, QUOTA_IN));
	frame_put_u64(&gate->link.out, quota_used(gate->quota, QUOTA_OUT));
	box_link_send(&gate->link, frame_end(&gate->link.out));
	return 0;
}

static int on_answer(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct gate_answer answer;
	int r = gate_answer_get(frame, &answer);

	(void)fds;
	(void)fd_count;
	if (r == 0)
		requests_answered(context, &answer);
	return r;
}

static int on_asking(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	uint32_t asks = frame_get_u32(frame);
	struct gate *gate = context;

	(void)fds;
	(void)fd_count;
	if (frame_finish(frame) < 0 || asks > 1)
		return -EBADMSG;
	gate->asks = asks;
	return 0;
}

/* 0, and the new policy is in force as a whole; or the old one is as if nobody had asked. */
static int change_policy(struct gate *gate, int fd)
{
	struct snapshot *snapshot;
	int r = sealed_snapshot_load(fd, &snapshot);

	if (r < 0)
		return r;
	/* The certificate that this would need is made before the jail. */
	if (policy_intercepts_any(snapshot_policy(snapshot)) && !gate->authority.ca)
		return -EOPNOTSUPP;
	r = quota_change(gate->quota, snapshot_policy(snapshot), clock_monotonic_ns());
	if (r == 0)
		gate->now = *snapshot_policy(snapshot);
	return r;
}

static int on_policy(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct gate *gate = context;
	int r = frame_finish(frame) < 0 ? -EBADMSG : 0;
	uint32_t ended = 0;

	(void)fd_count;
	if (r < 0)
		return r;
	r = change_policy(gate, fds[0]);
	if (r == 0)
		ended = flows_judge_again(gate);
	frame_begin(&gate->link.out, GATE_POLICY_SET);
	frame_put_u32(&gate->link.out, (uint32_t)-r);
	frame_put_u32(&gate->link.out, ended);
	box_link_send(&gate->link, frame_end(&gate->link.out));
	return 0;
}

/* The box has checked them; ours is the same check once more. */
static int on_headers(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct gate *gate = context;
	cleanup_free char **triples = frame_get_strv(frame);
	int r = frame_finish(frame);

	(void)fds;
	(void)fd_count;
	return r < 0 ? -EBADMSG : owner_headers_set(&gate->secrets.headers, (const char *const *)triples);
}

static int on_stop(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct gate *gate = context;

	(void)fds;
	(void)fd_count;
	if (frame_finish(frame) < 0)
		return -EBADMSG;
	/* What was sent before the end is sent, as the kernel would have done for a program that has ended. */
	for (const struct gate_service *const *service = gate->services; *service; service++)
		if ((*service)->stop)
			(*service)->stop(gate);
	event_add(&gate->hearing.stop_timer, &(struct timeval){ .tv_usec = GATE_LINGER_MS * 1000 });
	gate_check_stopped(gate);
	return 0;
}

static const struct frame_rule box_rules[] = {
	{ GATE_START, 1 << GATE_NEW, 8192, 3, 4, on_start },
	{ GATE_ROUTE, 1 << GATE_NEW | 1 << GATE_SERVING, 512, 0, 0, on_route },
	{ GATE_GO, 1 << GATE_SERVING, 64, 0, 0, on_go },
	{ GATE_POLICY, 1 << GATE_NEW | 1 << GATE_SERVING, 64, 1, 1, on_policy },
	{ GATE_PUBLISH, 1 << GATE_SERVING, 64, 1, 1, on_publish },
	{ GATE_INSIDE, 1 << GATE_SERVING, 64, 0, 1, on_inside },
	{ GATE_PAUSE, 1 << GATE_NEW | 1 << GATE_SERVING, 64, 0, 0, on_pause },
	{ GATE_MEASURE, 1 << GATE_SERVING, 64, 0, 0, on_measure },
	{ GATE_ANSWER, 1 << GATE_SERVING, 2048, 0, 0, on_answer },
	{ GATE_ASKING, 1 << GATE_SERVING, 64, 0, 0, on_asking },
	{ GATE_STOP, 1 << GATE_NEW | 1 << GATE_SERVING, 64, 0, 0, on_stop },
	{ GATE_HEADERS, 1 << GATE_NEW | 1 << GATE_SERVING, FRAME_MESSAGE_MAX, 0, 0, on_headers },
	{ GATE_INTRODUCE, 1 << GATE_NEW, 64, 1, FRAME_FD_MAX, on_introduce },
};

/*
 * All that is there: the box does not wait for us, and answers as many connections as the door takes in one turn. One
 * at a time, its socket would fill up, and it would take us for dead.
 */
int dispatch_box(struct gate *gate)
{
	struct gate_hearing *hearing = &gate->hearing;
	int r = 1;

	for (int i = 0; r > 0 && i < BOX_BATCH; i++) {
		struct pollfd polled = { .fd = gate->link.fd, .events = POLLIN };

		if (i && poll(&polled, 1, 0) <= 0)
			break;
		r = frame_dispatch(gate->link.fd, &hearing->scratch, hearing->state, box_rules, ARRAY_SIZE(box_rules),
				   gate);
	}
	return r;
}
