/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The beginning of a TLS connection that is relayed. A server may answer a hello by asking for another one
 * (HelloRetryRequest, RFC 8446 4.1.4), and goes by the name in that. So the first hello goes out alone; what the client
 * says behind it waits until the server's answer has come, and where that asks for another hello, until that is whole
 * and names the same server. Encrypted data that was sent early waits with it. Runs in atoll-egress.
 */

#include "egress/flow/relay.h"
#include "egress/tls/hello.h"

struct handshake_options {
	struct event_base *base;         /* borrowed, as all that follows */
	struct relay *relay;
	int inside_fd, outside_fd;
	const struct hello *first;       /* whole, and still in the socket */
	/* The second hello names another server, or cannot be read. The handshake may be freed. */
	void (*on_refused)(void *context, const struct hello *second);
	/* What is waited for does not come. The handshake may be freed. */
	void (*on_silence)(void *context);
	void *context;
};

struct handshake {
	struct handshake_options options;
	struct event server, client;
	struct hello from_server, second;
	size_t seen;                     /* bytes that the one of them which is read was fed with */
	bool is_begun;
};

/* Starts both halves of the relay; it, and the handshake, may be gone afterwards. */
void handshake_start(struct handshake *handshake, const struct handshake_options *options);
/* Stops watching both sockets, which stay open. Nothing where it was not started, or twice. */
void handshake_done(struct handshake *handshake);
