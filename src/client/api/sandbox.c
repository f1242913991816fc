/* SPDX-License-Identifier: Apache-2.0 */
#include "client/api/sandbox.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "client/api/fault.h"
#include "client/api/job.h"
#include "client/api/record.h"
#include "os/fd.h"

/*
 * Theory of operation. The caller polls one descriptor, an epoll of what is read for a handle: the socket to the box,
 * the outputs that it captures, the jobs that it waits for, and an eventfd that is always readable while events are
 * queued, which happens only where a request had to wait. Nothing is read ahead: one step takes one message. The box
 * sends an event only where it has credit for it, which is given back when the caller took the event, so that the queue
 * is bounded, too.
 */

void streams_free(struct streams *streams)
{
	if (!streams)
		return;
	for (int i = 0; i < 3; i++)
		close_fd(&streams->fds[i]);
	close_fd(&streams->terminal_fd);
	streams_release(streams);
	free(streams);
}

static int watch(struct atoll_sandbox *sandbox, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	return epoll_ctl(sandbox->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int sandbox_watch(struct atoll_sandbox *sandbox, int fd)
{
	return watch(sandbox, fd, EPOLLIN);
}

/* It may be shared with a child behind fork(2), in which case closing alone would not take it out. */
void sandbox_unwatch(struct atoll_sandbox *sandbox, int fd)
{
	if (fd >= 0)
		(void)epoll_ctl(sandbox->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

static int open_fds(struct atoll_sandbox *sandbox)
{
	int r = epoll_create1(EPOLL_CLOEXEC);

	sandbox->epoll_fd = r < 0 ? -errno : fd_move_above(r, 3);
	if (sandbox->epoll_fd < 0)
		return sandbox->epoll_fd;
	r = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	sandbox->wake_fd = r < 0 ? -errno : fd_move_above(r, 3);
	r = sandbox->wake_fd < 0 ? sandbox->wake_fd : watch(sandbox, sandbox->wake_fd, 0);
	return r == 0 && sandbox->socket_fd >= 0 ? sandbox_watch(sandbox, sandbox->socket_fd) : r;
}

int sandbox_new(struct atoll_context *context, const char *id, int socket_fd, struct atoll_sandbox **ret)
{
	struct atoll_sandbox *sandbox = calloc(1, sizeof *sandbox);
	int r;

	if (!sandbox) {
		close_fd(&socket_fd);
		return -ENOMEM;
	}
	sandbox->context = context_ref(context);
	memcpy(sandbox->id, id, SESSION_ID_SIZE);
	sandbox->socket_fd = socket_fd;
	sandbox->wake_fd = FD_NONE;
	sandbox->last = &sandbox->first;
	r = open_fds(sandbox);
	if (r < 0)
		atoll_sandbox_free(sandbox);
	else
		*ret = sandbox;
	return r;
}

void pending_free(struct pending *pending)
{
	streams_free(pending->streams);
	job_free(pending->job);
	free(pending);
}

struct atoll_record *sandbox_take_event(struct atoll_sandbox *sandbox, bool *ret_has_credit)
{
	struct queued *queued = sandbox->first;
	struct atoll_record *event = queued->event;

	*ret_has_credit = queued->has_credit;
	sandbox->first = queued->next;
	if (!sandbox->first)
		sandbox->last = &sandbox->first;
	free(queued);
	return event;
}

void atoll_sandbox_free(atoll_sandbox *sandbox)
{
	bool has_credit;

	if (!sandbox)
		return;
	while (sandbox->first)
		atoll_record_free(sandbox_take_event(sandbox, &has_credit));
	while (sandbox->pending) {
		struct pending *pending = sandbox->pending;

		sandbox->pending = pending->next;
		pending_free(pending);
	}
	while (sandbox->streams) {
		struct streams *streams = sandbox->streams;

		sandbox->streams = streams->next;
		streams_free(streams);
	}
	close_fd(&sandbox->socket_fd);
	close_fd(&sandbox->wake_fd);
	close_fd(&sandbox->epoll_fd);
	free(sandbox->refusal);
	free(sandbox->parked);
	atoll_context_free(sandbox->context);
	free(sandbox);
}

int sandbox_check(const struct atoll_sandbox *sandbox, struct atoll_error *error)
{
	return context_check(sandbox ? sandbox->context : NULL, error);
}

const char *atoll_id(const atoll_sandbox *sandbox)
{
	return sandbox ? sandbox->id : NULL;
}

int atoll_fd(const atoll_sandbox *sandbox)
{
	return sandbox ? sandbox->epoll_fd : ATOLL_E_INVALID;
}

/* ---- the queue ---- */

int sandbox_queue(struct atoll_sandbox *sandbox, struct atoll_record *event, bool has_credit)
{
	struct queued *queued = event ? malloc(sizeof *queued) : NULL;

	if (!queued) {
		atoll_record_free(event);
		return -ENOMEM;
	}
	*queued = (struct queued){ .event = event, .has_credit = has_credit };
	*sandbox->last = queued;
	sandbox->last = &queued->next;
	return 0;
}

/*
 * It is in the epoll from the beginning, one for each handle (a descriptor may be in a thousand epolls and no more). To
 * change what is waited for takes neither memory nor a descriptor.
 */
static void set_awake(struct atoll_sandbox *sandbox, bool is_awake)
{
	struct epoll_event event = { .events = is_awake ? EPOLLIN : 0, .data.fd = sandbox->wake_fd };

	if (sandbox->is_awake != is_awake)
		(void)epoll_ctl(sandbox->epoll_fd, EPOLL_CTL_MOD, event.data.fd, &event);
	sandbox->is_awake = is_awake;
}

void sandbox_wake(struct atoll_sandbox *sandbox)
{
	set_awake(sandbox, sandbox->first != NULL);
}

void sandbox_doze(struct atoll_sandbox *sandbox)
{
	set_awake(sandbox, false);
}

struct atoll_record *event_new(enum link_event type, uint64_t number)
{
	struct atoll_record *event = record_new(ATOLL_EVENT);

	if (record_put_u64(event, "event", type) == 0 && record_put_u64(event, "number", number) == 0)
		return event;
	atoll_record_free(event);
	return NULL;
}

struct pending *sandbox_take_pending(struct atoll_sandbox *sandbox, uint64_t ticket)
{
	for (struct pending **at = &sandbox->pending; *at; at = &(*at)->next)
		if ((*at)->ticket == ticket) {
			struct pending *pending = *at;

			*at = pending->next;
			return pending;
		}
	return NULL;
}
