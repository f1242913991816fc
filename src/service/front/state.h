/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the modules of the front share: the loop, the way to the launcher, and the lists of what is under way. Private
 * to this folder; front.h is for everybody else.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "supervise/loop.h"

struct MHD_Daemon;
struct client;
struct exchange;
struct front_extension;
struct launcher;
struct process;
struct watcher;
struct relay;

enum { FRONT_LISTENERS_MAX = 2, FRONT_BODY_MAX = 1 << 20, FRONT_CONNECTIONS_MAX = 4096 };

/* One listening socket, and who speaks HTTP on it. */
struct front_listener {
	struct MHD_Daemon *daemon;
	struct loop_source source;   /* its epoll */
	int fd;                      /* borrowed: it is one of listen_fds */
};

struct front {
	struct loop loop;
	struct launcher *launcher;
	struct front_listener listeners[FRONT_LISTENERS_MAX];
	size_t listener_count;
	char **names;                /* owned: domains that are ours (host.h) */
	uint64_t body_max;           /* bytes of a request of the control plane */
	bool has_resumed;            /* a connection: libmicrohttpd must run, and does not say so itself */
	uint64_t now_ms;             /* monotonic, of this turn of the loop */
	struct client *clients;      /* connections */
	size_t client_count;
	struct exchange *exchanges;  /* requests under way */
	struct process *processes;
	struct watcher *watchers;
	struct relay *relays;
	const struct front_extension *extension; /* NULL: none */
	void *extension_state;       /* its own */
	char *certificate, *private_key; /* owned: PEM, or NULL */
	int listen_fds[FRONT_LISTENERS_MAX];
	int spare_fd;                /* kept for who comes when no other is left */
	unsigned connections_max;
};
