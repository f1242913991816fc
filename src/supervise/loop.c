/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/loop.h"

#include <poll.h>
#include <sys/epoll.h>

int loop_init(struct loop *loop)
{
	loop->first = NULL;
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return loop->epoll_fd < 0 ? -errno : 0;
}

void loop_done(struct loop *loop)
{
	close_fd(&loop->epoll_fd);
}

static int control(struct loop *loop, int operation, struct loop_source *source)
{
	struct epoll_event event = { .events = source->events, .data.ptr = source };

	return epoll_ctl(loop->epoll_fd, operation, source->fd, &event) < 0 ? -errno : 0;
}

int loop_add(struct loop *loop, struct loop_source *source)
{
	int r = source->is_added ? 0 : control(loop, EPOLL_CTL_ADD, source);

	if (r == 0)
		source->is_added = true;
	return r;
}

int loop_change(struct loop *loop, struct loop_source *source, uint32_t events)
{
	if (source->events == events)
		return 0;
	source->events = events;
	return source->is_added ? control(loop, EPOLL_CTL_MOD, source) : 0;
}

void loop_add_first(struct loop *loop, struct loop_source *source)
{
	loop->first = source;
	loop->was_first = false;
	source->is_added = true;
}

void loop_remove(struct loop *loop, struct loop_source *source)
{
	if (source == loop->first)
		loop->first = NULL;
	else if (source->is_added)
		(void)control(loop, EPOLL_CTL_DEL, source);
	source->is_added = false;
}

/* Poll and epoll have the same bits. */
static int run(struct loop_source *source, uint32_t events)
{
	int r = source->ready(source->context, events);

	return r < 0 ? r : 1;
}

/*
 * Waits for the first source and the others together. As loop_step(); *ret_events is not 0 where it is the first one's
 * turn.
 */
static int wait_for_any(struct loop *loop, int timeout_ms, uint32_t *ret_events)
{
	struct pollfd polled[] = {
		{ .fd = loop->first->fd, .events = (short)loop->first->events },
		{ .fd = loop->epoll_fd, .events = POLLIN },
	};
	int n = poll(polled, 2, timeout_ms);

	if (n <= 0)
		return n < 0 && errno != EINTR ? -errno : 0;
	/* By turns, so that neither waits for the other for ever. */
	loop->was_first = polled[0].revents && !(polled[1].revents && loop->was_first);
	*ret_events = loop->was_first ? (uint32_t)polled[0].revents : 0;
	return 1;
}

int loop_step(struct loop *loop, int timeout_ms)
{
	struct epoll_event event;
	uint32_t events = 0;
	int n = loop->first ? wait_for_any(loop, timeout_ms, &events) : 1;

	if (n <= 0 || events)
		return events ? run(loop->first, events) : n;
	n = epoll_wait(loop->epoll_fd, &event, 1, loop->first ? 0 : timeout_ms);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	return n ? run(event.data.ptr, event.events) : 0;
}
