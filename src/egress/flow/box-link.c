/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/flow/box-link.h"

enum { QUEUE_MS = 10, REQUESTS_MAX = 32 << 10 };

static void send_built(struct box_link *link, const struct buf *out, int built)
{
	int r = built < 0 ? built : frame_send(link->fd, out, NULL, 0);

	if (r < 0) {
		link->error = r;
		event_base_loopbreak(link->base);
	}
}

void box_link_flush(struct box_link *link)
{
	/* First: a request is over before its connection is. */
	if (link->requests.size)
		send_built(link, &link->requests, frame_end(&link->requests));
	buf_reset(&link->requests);
	for (size_t i = 0; i < link->queued_count; i++)
		send_built(link, &link->queued[i], 0);
	link->queued_count = 0;
}

void box_link_send(struct box_link *link, int built)
{
	box_link_flush(link);
	send_built(link, &link->out, built);
}

void box_link_send_plain(struct box_link *link, uint16_t type)
{
	frame_begin(&link->out, type);
	box_link_send(link, frame_end(&link->out));
}

struct buf *box_link_queue(struct box_link *link)
{
	if (link->queued_count == BOX_LINK_QUEUE_MAX)
		box_link_flush(link);
	return &link->queued[link->queued_count];
}

static void set_queue_timer(struct box_link *link)
{
	if (!event_pending(&link->queue_timer, EV_TIMEOUT, NULL))
		event_add(&link->queue_timer, &(struct timeval){ .tv_usec = QUEUE_MS * 1000 });
}

void box_link_queue_request(struct box_link *link, const struct gate_request *request)
{
	if (!link->requests.size)
		frame_begin(&link->requests, GATE_REQUESTS);
	gate_request_put(&link->requests, request);
	if (link->requests.size > REQUESTS_MAX - GATE_REQUEST_MAX)
		box_link_flush(link);
	else
		set_queue_timer(link);
}

void box_link_queued(struct box_link *link, int built)
{
	if (built < 0) {
		send_built(link, &link->queued[link->queued_count], built);
		return;
	}
	link->queued_count++;
	set_queue_timer(link);
}

static void on_queue_timer(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	box_link_flush(context);
}

void box_link_init(struct box_link *link, int fd)
{
	link->fd = fd;
	buf_init(&link->out, FRAME_MESSAGE_MAX);
	buf_init(&link->requests, REQUESTS_MAX);
	for (size_t i = 0; i < BOX_LINK_QUEUE_MAX; i++)
		buf_init(&link->queued[i], FRAME_MESSAGE_MAX);
}

int box_link_start(struct box_link *link, struct event_base *base)
{
	link->base = base;
	return evtimer_assign(&link->queue_timer, base, on_queue_timer, link) < 0 ? -EINVAL : 0;
}

void box_link_done(struct box_link *link)
{
	buf_done(&link->out);
	buf_done(&link->requests);
	for (size_t i = 0; i < BOX_LINK_QUEUE_MAX; i++)
		buf_done(&link->queued[i]);
}
