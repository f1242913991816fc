/* SPDX-License-Identifier: Apache-2.0 */
#include "service/front/tunnel.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include "os/fd.h"

enum { TUNNEL_BYTES = 64 << 10, READ_BYTES = 16 << 10 };

static struct tunnel_side *other_of(struct tunnel_side *side)
{
	return &side->tunnel->sides[side == side->tunnel->sides];
}

/* False: the connection is broken. */
static bool flush(struct tunnel_side *side)
{
	while (side->out.size) {
		ssize_t n = send(side->source.fd, side->out.bytes, side->out.size, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN;
		buf_consume(&side->out, (size_t)n);
	}
	if (other_of(side)->is_read && !side->is_shut) {
		side->is_shut = true;
		(void)shutdown(side->source.fd, SHUT_WR);
	}
	return true;
}

static bool read_side(struct tunnel_side *side)
{
	struct tunnel_side *other = other_of(side);
	uint8_t bytes[READ_BYTES];
	ssize_t n;

	if (side->is_read || other->out.size + sizeof bytes > TUNNEL_BYTES)
		return true;
	n = recv(side->source.fd, bytes, sizeof bytes, 0);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (n == 0)
		side->is_read = true;
	else
		buf_put(&other->out, bytes, (size_t)n);
	return buf_error(&other->out) == 0 && flush(other);
}

static int watch(struct tunnel_side *side)
{
	bool has_room = other_of(side)->out.size + READ_BYTES <= TUNNEL_BYTES;

	return loop_change(side->tunnel->loop, &side->source,
			   (!side->is_read && has_room ? EPOLLIN : 0) | (side->out.size ? EPOLLOUT : 0));
}

static void end(struct tunnel *tunnel)
{
	tunnel_done(tunnel);
	tunnel->ended(tunnel->context);
}

static int on_ready(void *context, uint32_t events)
{
	struct tunnel_side *side = context, *other = other_of(side);
	struct tunnel *tunnel = side->tunnel;
	bool is_whole = true;

	if (events & EPOLLOUT)
		is_whole = flush(side);
	if (is_whole && events & (EPOLLIN | EPOLLHUP))
		is_whole = read_side(side);
	/* Both ways are closed, and it waits for nothing: it would be told so for ever. */
	if (events & EPOLLERR || (events & EPOLLHUP && side->is_read))
		is_whole = false;
	if (!is_whole || (side->is_read && other->is_read && !side->out.size && !other->out.size) ||
	    watch(side) < 0 || watch(other) < 0)
		end(tunnel);
	return 0;
}

int tunnel_begin(struct tunnel *tunnel, struct loop *loop, int a, int b)
{
	const int fds[] = { a, b };
	int r = 0;

	tunnel->loop = loop;
	for (size_t i = 0; i < 2 && r == 0; i++) {
		struct tunnel_side *side = &tunnel->sides[i];

		side->tunnel = tunnel;
		side->source = (struct loop_source){
			.fd = fds[i], .events = EPOLLIN | EPOLLOUT, .ready = on_ready, .context = side,
		};
		r = fd_set_nonblocking(fds[i], true);
		if (r == 0)
			r = loop_add(loop, &side->source);
	}
	if (r < 0)
		tunnel_done(tunnel);
	return r;
}

void tunnel_done(struct tunnel *tunnel)
{
	for (size_t i = 0; i < 2; i++) {
		if (tunnel->loop)
			loop_remove(tunnel->loop, &tunnel->sides[i].source);
		buf_done(&tunnel->sides[i].out);
	}
}
