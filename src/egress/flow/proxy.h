/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The host's own way out, where it has one (HTTPS_PROXY): which proxy, for which hosts, and the tunnel through it
 * (RFC 9110 9.3.6). Runs in atoll-egress.
 */

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

struct proxy {
	char host[254];
	uint16_t port;
	char authorization[512];     /* the value of Proxy-Authorization; "": none */
	char except[2048];           /* NO_PROXY: hosts that are reached without it */
};

/*
 * "http://[USER:PASSWORD@]HOST[:PORT][/]"; no_proxy may be NULL. -EINVAL for anything else (another scheme, bytes that
 * no header can hold), -ENAMETOOLONG.
 */
int proxy_parse(struct proxy *ret_proxy, const char *url, const char *no_proxy) MUST_USE;

/* Whether this host is one of NO_PROXY: "*", a name and all below it, with or without a leading dot. */
bool proxy_excepts(const struct proxy *proxy, const char *host);

struct tunnel;

struct tunnel_target {
	const char *host;            /* borrowed for the call */
	uint16_t port;
	void (*told)(void *context, int errnum);
	void *context;
};

/*
 * Asks the proxy behind fd (connected, non-blocking, borrowed) for host and port. told is called once, never from
 * within, with 0 or an errno; not after tunnel_cancel(). Not a byte behind the proxy's answer is taken from fd.
 * -ENOMEM.
 */
int tunnel_start(struct tunnel **ret_tunnel, struct event_base *base, int fd, const struct proxy *proxy,
		 const struct tunnel_target *target) MUST_USE;

/* Frees it, and stops watching fd, which stays open. After told was called it is freed already. */
void tunnel_cancel(struct tunnel *tunnel);
