/* SPDX-License-Identifier: Apache-2.0 */
#include "box/loop.h"

#include <sys/epoll.h>

int loop_init(struct loop *loop)
{
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

void loop_remove(struct loop *loop, struct loop_source *source)
{
	if (source->is_added)
		(void)control(loop, EPOLL_CTL_DEL, source);
	source->is_added = false;
}

int loop_step(struct loop *loop, int timeout_ms)
{
	struct epoll_event event;
	struct loop_source *source;
	int n = epoll_wait(loop->epoll_fd, &event, 1, timeout_ms);
	int r;

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	if (n == 0)
		return 0;
	source = event.data.ptr;
	r = source->ready(source->context, event.events);
	return r < 0 ? r : 1;
}
