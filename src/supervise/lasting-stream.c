/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/lasting-stream.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "os/fd.h"
#include "supervise/relay.h"

/*
 * Each reader has a position in the ring. As long as one of them has all that was read, more is read: the command waits
 * for the fastest, and who is slower loses the oldest bytes. Where nobody reads all is read, and the ring keeps the
 * newest. A single reader who has everything gets large pieces by splice(2), as from a relay, and the ring stays empty.
 */

enum { SPLICE_MAX = 1 << 20, SPLICE_MIN = 16 << 10, LOST_SIZE = 4 << 10 };

void lasting_stream_init(struct lasting_stream *stream, const struct lasting_owner *owner)
{
	*stream = (struct lasting_stream){ .owner = owner, .in = FD_NONE };
	ring_init(&stream->ring, owner->budget, LASTING_RING_SIZE);
	for (size_t i = 0; i < LASTING_CLIENTS_MAX; i++)
		stream->readers[i] = (struct lasting_reader){ .stream = stream, .fd = FD_NONE };
}

static void close_in(struct lasting_stream *stream)
{
	loop_remove(stream->owner->loop, &stream->source);
	close_fd(&stream->in);
	stream->waits_for_room = false;
}

static void drop_reader(struct lasting_reader *reader)
{
	loop_remove(reader->stream->owner->loop, &reader->source);
	close_fd(&reader->fd);
	reader->stream->waits_for_room = false;
}

void lasting_stream_done(struct lasting_stream *stream)
{
	for (size_t i = 0; i < LASTING_CLIENTS_MAX; i++)
		drop_reader(&stream->readers[i]);
	close_in(stream);
	ring_done(&stream->ring);
}

unsigned lasting_stream_readers(const struct lasting_stream *stream)
{
	unsigned count = 0;

	for (size_t i = 0; i < LASTING_CLIENTS_MAX; i++)
		count += stream->readers[i].fd >= 0;
	return count;
}

/* Whoever has all that was read: NULL: there is none. */
static struct lasting_reader *first_idle(struct lasting_stream *stream)
{
	for (size_t i = 0; i < LASTING_CLIENTS_MAX; i++)
		if (stream->readers[i].fd >= 0 && stream->readers[i].at == stream->ring.to)
			return &stream->readers[i];
	return NULL;
}

/* ---- to the readers ---- */

static ssize_t write_some(const struct lasting_reader *reader, const void *bytes, size_t size)
{
	ssize_t n;

	do
		n = reader->is_socket ? send(reader->fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL)
				      : write(reader->fd, bytes, size);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static void flush_reader(struct lasting_reader *reader)
{
	struct lasting_stream *stream = reader->stream;
	const void *bytes;
	size_t size;

	if (reader->at < stream->ring.from) {
		stream->dropped += stream->ring.from - reader->at;
		reader->at = stream->ring.from;
	}
	while ((size = ring_at(&stream->ring, reader->at, &bytes)) > 0) {
		ssize_t n = write_some(reader, bytes, size);

		if (n == -EAGAIN)
			return;
		if (n < 0) {
			drop_reader(reader);
			return;
		}
		reader->at += (uint64_t)n;
	}
	if (stream->in < 0 && stream->is_there)
		drop_reader(reader);
}

/* What all have is not kept. */
static void flush(struct lasting_stream *stream)
{
	uint64_t slowest = UINT64_MAX;

	for (size_t i = 0; i < LASTING_CLIENTS_MAX; i++) {
		struct lasting_reader *reader = &stream->readers[i];
		uint64_t at;

		if (reader->fd < 0)
			continue;
		flush_reader(reader);
		at = reader->at;
		/* One that left in the middle leaves the rest to the next. */
		slowest = at < slowest ? at : slowest;
	}
	if (slowest != UINT64_MAX)
		ring_drop(&stream->ring, slowest);
	if (stream->ring.from == stream->ring.to && (slowest == UINT64_MAX || stream->in < 0))
		ring_done(&stream->ring);
}

/* ---- from the command ---- */

static int account(struct lasting_stream *stream, size_t n)
{
	int r = stream->owner->on_output(stream->owner->context, n);

	if (r > 0)
		close_in(stream);
	return r < 0 ? r : 0;
}

/* 1: not now: the reader is full, or what is there are small pieces. */
static int take_pages(struct lasting_stream *stream, struct lasting_reader *reader)
{
	int waiting = 0;
	ssize_t n;

	if (reader->is_socket || lasting_stream_readers(stream) != 1 ||
	    ioctl(stream->in, FIONREAD, &waiting) < 0 || waiting < SPLICE_MIN)
		return 1;
	n = splice(stream->in, NULL, reader->fd, NULL, SPLICE_MAX, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
	if (n > 0) {
		ring_pass(&stream->ring, (uint64_t)n);
		reader->at = stream->ring.to;
		return account(stream, (size_t)n);
	}
	if (n < 0 && errno == EPIPE) {
		drop_reader(reader);
		return 0;
	}
	stream->waits_for_room = n < 0 && errno == EAGAIN;
	return stream->waits_for_room ? 0 : 1;
}

static int take_copies(struct lasting_stream *stream)
{
	uint8_t lost[LOST_SIZE];
	size_t room = sizeof lost;
	void *space = ring_space(&stream->ring, &room);
	ssize_t n;

	do
		n = read(stream->in, space ? space : lost, room);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n <= 0) { /* the end, or EIO of a terminal whose other side is gone */
		close_in(stream);
		return 0;
	}
	if (space) {
		uint64_t over = ring_added(&stream->ring, (size_t)n);

		stream->dropped += lasting_stream_readers(stream) ? 0 : over;
	} else {
		stream->dropped += (uint64_t)n;
		ring_pass(&stream->ring, (uint64_t)n);
	}
	return account(stream, (size_t)n);
}

static int read_stream(struct lasting_stream *stream)
{
	struct lasting_reader *idle = first_idle(stream);
	int r = 1;

	if (stream->in < 0 || (!idle && lasting_stream_readers(stream)))
		return 0;
	stream->waits_for_room = false;
	if (idle)
		r = take_pages(stream, idle);
	return r == 1 ? take_copies(stream) : r;
}

/* ---- what is waited for ---- */

static int wait_for_reader(struct lasting_reader *reader)
{
	const struct lasting_stream *stream = reader->stream;
	bool wants_room = reader->at < stream->ring.to || stream->waits_for_room;

	return loop_change(stream->owner->loop, &reader->source, wants_room ? EPOLLOUT : 0);
}

static int wait_for_more(struct lasting_stream *stream)
{
	bool can_take = !stream->waits_for_room && (first_idle(stream) || !lasting_stream_readers(stream));
	int r = 0;

	for (size_t i = 0; r == 0 && i < LASTING_CLIENTS_MAX; i++)
		if (stream->readers[i].fd >= 0)
			r = wait_for_reader(&stream->readers[i]);
	if (r < 0 || stream->in < 0)
		return r;
	/* Its hang-up would wake us again and again. */
	if (can_take && !stream->source.is_added)
		return loop_add(stream->owner->loop, &stream->source);
	if (!can_take)
		loop_remove(stream->owner->loop, &stream->source);
	return 0;
}

static int pump(struct lasting_stream *stream)
{
	int r;

	flush(stream);
	r = read_stream(stream);
	flush(stream);
	return r < 0 ? r : wait_for_more(stream);
}

static int in_ready(void *context, uint32_t events)
{
	return pump(context);
}

static int reader_ready(void *context, uint32_t events)
{
	struct lasting_reader *reader = context;

	/* What it wrote before it left is its relay's to read. */
	if (events & (EPOLLERR | EPOLLHUP))
		drop_reader(reader);
	return pump(reader->stream);
}

int lasting_stream_listen(struct lasting_stream *stream)
{
	int r = fd_set_nonblocking(stream->in, true);

	stream->is_there = true;
	stream->source = (struct loop_source){ .fd = stream->in, .events = EPOLLIN, .ready = in_ready,
					       .context = stream };
	return r < 0 ? r : loop_add(stream->owner->loop, &stream->source);
}

/* ---- who comes, and the end ---- */

/* O_NONBLOCK belongs to the description, which whoever has the pipe from its maker shares. */
static int own_description(int fd)
{
	int own = relay_reopen(fd, O_WRONLY), r = 0;

	if (own >= 0) {
		close(fd);
		return own;
	}
	r = fd_set_nonblocking(fd, true);
	if (r < 0)
		close(fd);
	return r < 0 ? r : fd;
}

int lasting_stream_attach(struct lasting_stream *stream, int fd, bool is_socket)
{
	struct lasting_reader *reader = NULL;
	bool is_first = !lasting_stream_readers(stream);
	int r;

	for (size_t i = 0; i < LASTING_CLIENTS_MAX && !reader; i++)
		if (stream->readers[i].fd < 0)
			reader = &stream->readers[i];
	if (!reader) {
		close(fd);
		return -EAGAIN;
	}
	reader->fd = is_socket ? fd : own_description(fd);
	if (reader->fd < 0) {
		r = reader->fd;
		reader->fd = FD_NONE;
		return r;
	}
	reader->is_socket = is_socket;
	reader->at = is_first ? stream->ring.from : stream->ring.to;
	reader->source = (struct loop_source){ .fd = reader->fd, .ready = reader_ready, .context = reader };
	stream->waits_for_room = false;
	r = loop_add(stream->owner->loop, &reader->source);
	if (r < 0)
		drop_reader(reader);
	return r < 0 ? r : pump(stream);
}

void lasting_stream_forget(struct lasting_stream *stream)
{
	if (!lasting_stream_readers(stream))
		ring_done(&stream->ring);
}

void lasting_stream_end(struct lasting_stream *stream)
{
	int waiting = 0;

	/* A write behind this one's end gets SIGPIPE, as when a client of its own had left. */
	while (stream->in >= 0 && ioctl(stream->in, FIONREAD, &waiting) == 0 && waiting > 0)
		if (take_copies(stream) < 0)
			break;
	close_in(stream);
	flush(stream);
	/* Who is not done is woken by its own room. */
	if (wait_for_more(stream) < 0)
		lasting_stream_done(stream);
}

bool lasting_stream_is_settled(struct lasting_stream *stream)
{
	int waiting = 0;

	if (stream->in < 0)
		return true;
	/* What fails here fails in the loop, too. */
	if (pump(stream) < 0 || stream->in < 0)
		return true;
	if (!first_idle(stream) && lasting_stream_readers(stream))
		return false;
	return ioctl(stream->in, FIONREAD, &waiting) == 0 && waiting == 0;
}

bool lasting_stream_is_drained(const struct lasting_stream *stream)
{
	return stream->in < 0 && !lasting_stream_readers(stream);
}
