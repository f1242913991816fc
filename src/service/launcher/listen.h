/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where clients come in: a socket that listens, opened by atolld before the front is there and handed to each front,
 * so that nobody is refused while one follows another.
 */

#include "base/cleanup.h"
#include "service/launcher/store/settings.h"

/*
 * The socket (owned by the caller), and the port that it got. Negative with *err: taken, or no address of this machine.
 */
int listen_open(const struct settings *settings, uint16_t *ret_port, struct err *err) MUST_USE;

enum { LISTEN_MAX = 2 };

/*
 * Takes the sockets that the service manager opened for us (LISTEN_PID and LISTEN_FDS, sd_listen_fds(3)): one or two
 * of TCP that listen, which are what settings says of an address and its port then. How many (owned by the caller,
 * close-on-exec, not blocking; FD_NONE: none), 0: it opened none. Negative with *err: they are something else, or
 * other machines could come in where settings do not let them. The variables are gone in any case.
 */
int listen_inherit(struct settings *settings, int ret_fds[LISTEN_MAX], struct err *err) MUST_USE;

enum { LISTEN_URL_SIZE = SETTINGS_HOST_MAX + 32 };

struct listen_urls {
	char api[LISTEN_URL_SIZE], sandbox[LISTEN_URL_SIZE];
};

/*
 * "http://127.0.0.1:49982" for both, for people and for clients. With TLS and a domain of its own the names that its
 * certificate is for: "https://api.DOMAIN" and "https://sandbox.DOMAIN".
 */
void listen_get_urls(const struct settings *settings, uint16_t port, struct listen_urls *ret_urls);
