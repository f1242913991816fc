/* SPDX-License-Identifier: Apache-2.0 */
#include "service/front/launcher.h"

#include <string.h>
#include <sys/epoll.h>

#include "os/fd.h"
#include "service/front/state.h"

enum { SLOT_BITS = 12, SLOTS = 1 << SLOT_BITS, UNSENT_MAX = 512 };

struct pending {
	uint64_t ticket;             /* 0: free */
	launcher_replied replied;    /* NULL: nobody waits any more */
	void *context;
};

/* A frame that the socket did not take at once. */
struct unsent {
	struct unsent *next;
	size_t size;
	uint8_t bytes[];
};

struct launcher {
	struct front *front;
	launcher_said said;
	struct loop_source source;
	struct pending pending[SLOTS];
	uint64_t generation;
	size_t next_slot;
	struct buf out, scratch;
	struct unsent *first, **last;
	size_t unsent_count;
	struct service_message message;
};

struct launcher *launcher_new(struct front *front, int fd, launcher_said said)
{
	struct launcher *launcher = calloc(1, sizeof *launcher);

	if (!launcher)
		return NULL;
	launcher->front = front;
	launcher->said = said;
	launcher->source.fd = fd;
	launcher->generation = 1;
	launcher->last = &launcher->first;
	buf_init(&launcher->out, FRAME_MESSAGE_MAX);
	buf_init(&launcher->scratch, FRAME_MESSAGE_MAX);
	return launcher;
}

void launcher_free(struct launcher *launcher)
{
	if (!launcher)
		return;
	loop_remove(&launcher->front->loop, &launcher->source);
	while (launcher->first) {
		struct unsent *next = launcher->first->next;

		free(launcher->first);
		launcher->first = next;
	}
	buf_done(&launcher->out);
	buf_done(&launcher->scratch);
	free(launcher);
}

static struct pending *slot_of(struct launcher *launcher, uint64_t ticket)
{
	struct pending *pending = &launcher->pending[ticket & (SLOTS - 1)];

	return ticket && pending->ticket == ticket ? pending : NULL;
}

struct buf *launcher_begin(struct launcher *launcher, enum service_operation operation, uint64_t *ret_ticket)
{
	if (launcher->unsent_count >= UNSENT_MAX)
		return NULL;
	for (size_t i = 0; i < SLOTS; i++) {
		size_t slot = (launcher->next_slot + i) & (SLOTS - 1);

		if (launcher->pending[slot].ticket)
			continue;
		launcher->next_slot = slot + 1;
		*ret_ticket = launcher->generation++ << SLOT_BITS | slot;
		service_begin_request(&launcher->out, *ret_ticket, operation);
		return &launcher->out;
	}
	return NULL;
}

static int keep_unsent(struct launcher *launcher)
{
	struct unsent *unsent = malloc(sizeof *unsent + launcher->out.size);

	if (!unsent)
		return -ENOMEM;
	unsent->next = NULL;
	unsent->size = launcher->out.size;
	memcpy(unsent->bytes, launcher->out.bytes, unsent->size);
	*launcher->last = unsent;
	launcher->last = &unsent->next;
	launcher->unsent_count++;
	return loop_change(&launcher->front->loop, &launcher->source, EPOLLIN | EPOLLOUT);
}

static bool is_full(int r)
{
	return r == -EAGAIN || r == -EWOULDBLOCK || r == -ENOBUFS;
}

static int send_out(struct launcher *launcher)
{
	int r = launcher->first ? -EAGAIN : frame_send(launcher->source.fd, &launcher->out, NULL, 0);

	return is_full(r) ? keep_unsent(launcher) : r;
}

int launcher_send(struct launcher *launcher, uint64_t ticket, launcher_replied replied, void *context)
{
	int r = service_end(&launcher->out, 0);

	if (r == 0)
		r = send_out(launcher);
	if (r == 0)
		launcher->pending[ticket & (SLOTS - 1)] = (struct pending){ ticket, replied, context };
	return r;
}

void launcher_forget(struct launcher *launcher, uint64_t ticket)
{
	struct pending *pending = slot_of(launcher, ticket);

	/* The slot stays taken until the reply has come, so that what waits there is bounded. */
	if (pending)
		pending->replied = NULL;
}

int launcher_tell_ready(struct launcher *launcher)
{
	int r;

	service_begin_ready(&launcher->out);
	r = service_end(&launcher->out, 0);
	return r < 0 ? r : send_out(launcher);
}

static int on_reply(struct launcher *launcher)
{
	struct pending *slot = slot_of(launcher, launcher->message.ticket);
	struct pending pending;

	if (!slot)
		return -EPROTO;
	pending = *slot;
	*slot = (struct pending){ 0 };
	if (pending.replied)
		pending.replied(pending.context, &launcher->message);
	return 0;
}

/*
 * A reply whose descriptors found no room in our table, and are lost: whoever waits hears that it failed. Its values
 * cannot be trusted to fit any more, but its ticket stands where it always does.
 */
static int on_lost_descriptors(struct launcher *launcher, uint8_t *bytes)
{
	struct service_message *message = &launcher->message;
	uint32_t size = frame_peek_size(bytes);
	struct frame frame;

	if (size > FRAME_MESSAGE_MAX || frame_open(&frame, bytes, size) < 0 || frame.type != SERVICE_REPLY)
		return -EPROTO;
	memset(message, 0, offsetof(struct service_message, fields));
	for (size_t i = 0; i < FRAME_FD_MAX; i++)
		message->fds[i] = FD_NONE;
	message->type = SERVICE_REPLY;
	message->ticket = frame_get_u64(&frame);
	message->operation = frame_get_u32(&frame);
	message->status = 503;
	return on_reply(launcher);
}

static int receive(struct launcher *launcher)
{
	int fds[FRAME_FD_MAX] = { FD_NONE, FD_NONE, FD_NONE, FD_NONE };
	struct service_message *message = &launcher->message;
	const char *problem;
	struct frame frame;
	size_t fd_count;
	uint8_t *memory;
	ssize_t n;
	int r;

	buf_reset(&launcher->scratch);
	memory = buf_reserve(&launcher->scratch, FRAME_MESSAGE_MAX);
	if (!memory)
		return -ENOMEM;
	n = fd_receive_message(launcher->source.fd, memory, FRAME_MESSAGE_MAX, fds, FRAME_FD_MAX, &fd_count);
	if (n == -EMSGSIZE)
		return on_lost_descriptors(launcher, memory);
	if (n <= 0)
		return n == 0 ? -EPIPE : (int)n;
	r = frame_open(&frame, memory, (size_t)n);
	if (r == 0)
		r = service_read(&frame, fds, fd_count, message, &problem);
	if (r < 0) {
		for (size_t i = 0; i < fd_count; i++)
			close_fd(&fds[i]);
		return r;
	}
	if (message->type == SERVICE_REPLY)
		r = on_reply(launcher);
	else if (message->type == SERVICE_EVENT)
		launcher->said(launcher->front, message);
	else
		r = -EPROTO;
	service_message_done(message);
	return r;
}

/* What waited, as long as the socket takes it. */
static int send_waiting(struct launcher *launcher)
{
	while (launcher->first) {
		struct unsent *unsent = launcher->first;
		ssize_t n = fd_send_message(launcher->source.fd, unsent->bytes, unsent->size, NULL, 0);

		if (n < 0)
			return is_full((int)n) ? 0 : (int)n;
		launcher->first = unsent->next;
		if (!launcher->first)
			launcher->last = &launcher->first;
		launcher->unsent_count--;
		free(unsent);
	}
	return loop_change(&launcher->front->loop, &launcher->source, EPOLLIN);
}

/* Negative ends the front: without its launcher it is nothing, and who breaks the protocol is not its launcher. */
static int on_ready(void *context, uint32_t events)
{
	struct launcher *launcher = context;
	int r = events & EPOLLOUT ? send_waiting(launcher) : 0;

	if (r == 0 && events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		r = receive(launcher);
	return is_full(r) ? 0 : r;
}

int launcher_listen(struct launcher *launcher)
{
	int r = fd_set_nonblocking(launcher->source.fd, true);

	launcher->source.events |= EPOLLIN;
	launcher->source.ready = on_ready;
	launcher->source.context = launcher;
	return r < 0 ? r : loop_add(&launcher->front->loop, &launcher->source);
}
