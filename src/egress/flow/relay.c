/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/flow/relay.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/clock.h"

/*
 * A connection that waits holds two sockets and no memory for bytes: pipes belong to a pool, and a half has one only
 * while the other side does not take what was read already. Then it reads no more, so that the kernel's windows
 * hold the sender back.
 */

enum { CHUNK_BYTES = 256 << 10, ROUNDS_MAX = 8, POOL_MAX = 32, FEW_BYTES = 16 << 10 };

static struct {
	int fds[POOL_MAX][2];
	size_t count;
} pool;

static int take_pipe(int fds[2])
{
	if (pool.count) {
		pool.count--;
		fds[0] = pool.fds[pool.count][0];
		fds[1] = pool.fds[pool.count][1];
		return 0;
	}
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	/* Fewer turns for a stream; where the user's share of pipe memory is used up it stays small. */
	(void)fcntl(fds[1], F_SETPIPE_SZ, CHUNK_BYTES);
	return 0;
}

static void give_pipe(struct relay_half *half)
{
	if (half->pipe[0] < 0)
		return;
	if (!half->in_pipe && pool.count < POOL_MAX) {
		pool.fds[pool.count][0] = take_fd(&half->pipe[0]);
		pool.fds[pool.count][1] = take_fd(&half->pipe[1]);
		pool.count++;
		return;
	}
	close_fd(&half->pipe[0]);
	close_fd(&half->pipe[1]);
}

static void wait_again(struct relay_half *half)
{
	event_del(&half->readable);
	event_add(&half->again, &(struct timeval){ .tv_usec = QUOTA_WAIT_MS * 1000 });
}

/*
 * splice(2) stops before a byte that its sender has marked as urgent, and would do so for ever, while the socket is
 * readable: a loop that only read(2) gets out of. The byte goes on as one of the stream (RFC 6093 4). As splice(2).
 */
static ssize_t take_urgent(struct relay_half *half)
{
	uint8_t byte;
	ssize_t n;

	setsockopt(half->from_fd, SOL_SOCKET, SO_OOBINLINE, &(int){ 1 }, sizeof(int));
	n = recv(half->from_fd, &byte, sizeof byte, MSG_DONTWAIT);
	return n > 0 ? write(half->pipe[1], &byte, sizeof byte) : n;
}

/* The end of a stream needs no pipe, and gives descriptors back: it is not kept waiting for one. As fill(). */
static int fill_nothing(struct relay_half *half)
{
	char byte;
	ssize_t n = recv(half->from_fd, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT);

	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return -errno;
	half->has_ended = n == 0;
	if (!half->has_ended)
		wait_again(half);
	return 0;
}

/*
 * 1: bytes are in the pipe; 0: none now (an event will come), or the half has ended; -errno. is_woken: the socket was
 * readable a moment ago. *ret_is_last: there were so few that there are probably no more, which spares the look.
 */
static int fill(struct relay_half *half, bool is_woken, bool *ret_is_last)
{
	const struct quota_share *share = half->relay->options.share;
	enum quota_way way = half == &half->relay->halves[RELAY_OUT] ? QUOTA_OUT : QUOTA_IN;
	uint64_t now_ns = clock_monotonic_ns();
	size_t wanted = half->may_take < CHUNK_BYTES ? (size_t)half->may_take : CHUNK_BYTES;
	size_t allowed = wanted ? quota_ask(share, way, wanted, now_ns) : 0;
	ssize_t n;

	if (half->in_pipe)
		return 1;
	if (half->has_ended || !wanted)
		return 0;
	if (!allowed && quota_is_used_up(share, way, now_ns))
		return -EDQUOT;
	if (!allowed) {
		wait_again(half);
		return 0;
	}
	if (half->pipe[0] < 0 && take_pipe(half->pipe) < 0)
		return fill_nothing(half);
	n = splice(half->from_fd, NULL, half->pipe[1], NULL, allowed, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (n < 0 && errno == EAGAIN && is_woken)
		n = take_urgent(half);
	if (n > 0) {
		quota_use(share, way, (size_t)n);
		if (half->may_take != UINT64_MAX)
			half->may_take -= (uint64_t)n;
		*ret_is_last = n < FEW_BYTES;
		half->in_pipe = (size_t)n;
		return 1;
	}
	if (n == 0)
		half->has_ended = true;
	return n == 0 || errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

/* 1: the pipe is empty; 0: the receiver takes no more now; -errno. */
static int drain(struct relay_half *half)
{
	while (half->in_pipe) {
		ssize_t n = splice(half->pipe[0], NULL, half->to_fd, NULL, half->in_pipe,
				   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EPIPE;
		half->in_pipe -= (size_t)n;
		half->moved_bytes += (size_t)n;
	}
	return 1;
}

/* Back to waiting: for the receiver while there is something for it, else for the sender. */
static void wait_for_events(struct relay_half *half)
{
	if (half->in_pipe) {
		event_del(&half->readable);
		event_add(&half->writable, NULL);
		return;
	}
	give_pipe(half);
	event_del(&half->writable);
	if (half->has_ended || event_pending(&half->again, EV_TIMEOUT, NULL))
		return;
	if (half->may_take)
		event_add(&half->readable, NULL);
	else
		event_del(&half->readable);
}

static void pump(struct relay_half *half)
{
	struct relay *relay = half->relay;
	bool is_last = false;
	int r = 1;

	for (int round = 0; r > 0 && !is_last && round < ROUNDS_MAX; round++) {
		r = fill(half, round == 0, &is_last);
		if (r > 0)
			r = drain(half);
	}
	if (r < 0) {
		relay->options.on_end(relay->options.context, -r);
		return;
	}
	wait_for_events(half);
	if (!half->has_ended || half->in_pipe || half->is_closed)
		return;
	half->is_closed = true;
	event_del(&half->readable);
	shutdown(half->to_fd, SHUT_WR);
	if (relay->halves[RELAY_OUT].is_closed && relay->halves[RELAY_IN].is_closed)
		relay->options.on_end(relay->options.context, 0);
	else if (half == &relay->halves[RELAY_OUT])
		relay->options.on_said(relay->options.context);
}

static void on_event(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	pump(context);
}

static int init_half(struct relay_half *half, struct relay *relay, struct event_base *base, int from_fd, int to_fd)
{
	*half = (struct relay_half){ .relay = relay, .from_fd = from_fd, .to_fd = to_fd, .pipe = { FD_NONE, FD_NONE },
				     .may_take = UINT64_MAX };
	if (event_assign(&half->readable, base, from_fd, EV_READ | EV_PERSIST, on_event, half) < 0 ||
	    event_assign(&half->writable, base, to_fd, EV_WRITE | EV_PERSIST, on_event, half) < 0 ||
	    event_assign(&half->again, base, -1, 0, on_event, half) < 0)
		return -EINVAL;
	return 0;
}

int relay_init(struct relay *relay, struct event_base *base, const struct relay_options *options)
{
	int r = init_half(&relay->halves[RELAY_OUT], relay, base, options->inside_fd, options->outside_fd);

	relay->options = *options;
	return r < 0 ? r : init_half(&relay->halves[RELAY_IN], relay, base, options->outside_fd, options->inside_fd);
}

void relay_start(struct relay *relay, enum relay_way way)
{
	struct relay_half *half = &relay->halves[way];

	if (half->is_started)
		return;
	half->is_started = true;
	if (half->may_take)
		event_add(&half->readable, NULL);
}

void relay_allow(struct relay *relay, enum relay_way way, uint64_t bytes)
{
	struct relay_half *half = &relay->halves[way];

	half->may_take = bytes;
	if (half->is_started)
		wait_for_events(half);
}

bool relay_is_at_bound(const struct relay *relay, enum relay_way way)
{
	return !relay->halves[way].may_take && !relay->halves[way].in_pipe;
}

void relay_start_now(struct relay *relay, enum relay_way way)
{
	relay_start(relay, way);
	pump(&relay->halves[way]);
}

void relay_done(struct relay *relay)
{
	for (int way = 0; way < RELAY_WAY_COUNT; way++) {
		struct relay_half *half = &relay->halves[way];

		if (!half->relay)
			continue;
		event_del(&half->readable);
		event_del(&half->writable);
		event_del(&half->again);
		give_pipe(half);
		half->relay = NULL;
	}
}
