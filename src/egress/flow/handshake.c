/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/flow/handshake.h"

#include <sys/socket.h>

enum { PEEK_MAX = 64 << 10, PATIENCE_SECONDS = 60 };

static void stop(struct event *event, int fd)
{
	event_del(event);
	setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &(int){ 1 }, sizeof(int));
}

/* From here on both sides speak as they like. */
static void release_both(struct handshake *handshake)
{
	struct relay *relay = handshake->options.relay;

	stop(&handshake->server, handshake->options.outside_fd);
	stop(&handshake->client, handshake->options.inside_fd);
	relay_allow(relay, RELAY_IN, UINT64_MAX);
	relay_allow(relay, RELAY_OUT, UINT64_MAX);
}

static void wait_for(struct event *event)
{
	event_add(event, &(struct timeval){ .tv_sec = PATIENCE_SECONDS });
}

enum peek { PEEK_NONE, PEEK_WHOLE, PEEK_ENDED };

/*
 * Feeds hello with what is there, and leaves it in the socket. ENDED: no more comes. NONE: more is waited for, or
 * nothing came in time and the handshake may be freed.
 */
static enum peek feed(struct handshake *handshake, int fd, short what, struct hello *hello)
{
	static uint8_t peeked[PEEK_MAX];
	size_t seen = handshake->seen;
	ssize_t n;

	if (what & EV_TIMEOUT) {
		handshake->options.on_silence(handshake->options.context);
		return PEEK_NONE;
	}
	n = recv(fd, peeked, sizeof peeked, MSG_PEEK | MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return PEEK_NONE;
	if (n < 0 || (size_t)n <= seen)
		return PEEK_ENDED;
	handshake->seen = (size_t)n;
	if (hello_feed(hello, peeked + seen, (size_t)n - seen) != HELLO_MORE)
		return PEEK_WHOLE;
	if (n == PEEK_MAX)
		return PEEK_ENDED;
	setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &(int){ (int)n + 1 }, sizeof(int));
	return PEEK_NONE;
}

static void on_server(evutil_socket_t fd, short what, void *context)
{
	struct handshake *handshake = context;
	const struct handshake_options *options = &handshake->options;

	if (feed(handshake, fd, what, &handshake->from_server) == PEEK_NONE)
		return;
	if (handshake->from_server.state != HELLO_RETRY) {
		release_both(handshake);
		return;
	}
	/* It has read the first hello to its end, so all of that has left. */
	stop(&handshake->server, options->outside_fd);
	relay_allow(options->relay, RELAY_IN, UINT64_MAX);
	handshake->seen = 0;
	if (relay_is_at_bound(options->relay, RELAY_OUT))
		wait_for(&handshake->client);
	else
		options->on_refused(options->context, &handshake->second);
}

static void on_client(evutil_socket_t fd, short what, void *context)
{
	struct handshake *handshake = context;
	const struct handshake_options *options = &handshake->options;
	enum peek peek = feed(handshake, fd, what, &handshake->second);

	if (peek == PEEK_NONE)
		return;
	/* It has left: there is nothing that could go out. */
	if (hello_is_same(&handshake->second, options->first) || (peek == PEEK_ENDED && !handshake->seen))
		release_both(handshake);
	else
		options->on_refused(options->context, &handshake->second);
}

void handshake_start(struct handshake *handshake, const struct handshake_options *options)
{
	struct relay *relay = options->relay;

	*handshake = (struct handshake){ .options = *options, .is_begun = true };
	hello_init(&handshake->from_server, HELLO_OF_SERVER);
	hello_init(&handshake->second, HELLO_SECOND);
	event_assign(&handshake->server, options->base, options->outside_fd, EV_READ | EV_PERSIST, on_server,
		     handshake);
	event_assign(&handshake->client, options->base, options->inside_fd, EV_READ | EV_PERSIST, on_client,
		     handshake);
	wait_for(&handshake->server);
	relay_allow(relay, RELAY_IN, 0);
	relay_allow(relay, RELAY_OUT, options->first->size);
	relay_start(relay, RELAY_IN);
	relay_start_now(relay, RELAY_OUT);
}

void handshake_done(struct handshake *handshake)
{
	if (!handshake->is_begun)
		return;
	event_del(&handshake->server);
	event_del(&handshake->client);
	hello_done(&handshake->from_server);
	hello_done(&handshake->second);
	handshake->is_begun = false;
}
