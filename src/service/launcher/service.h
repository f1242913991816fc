/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The whole of atolld: places, database, listening sockets, the front, the loop, and an end that leaves every sandbox
 * as it is.
 */

#include "base/cleanup.h"
#include "service/launcher/places.h"

struct database;

/* What is said when it listens. */
struct service_ready {
	const char *url, *sandbox_url, *domain;
};

/* What it serves with. All borrowed. */
struct service_given {
	const struct settings *settings;
	const struct service_places *places;
	struct database *store;
	char **environment;
	const int *listen_fds;       /* LISTEN_MAX, which are taken (listen_inherit()); FD_NONE first: none */
};

/*
 * Serves until SIGTERM or SIGINT. ready: called once, when clients can connect. 0: it was told to end; negative with
 * *err.
 */
int service_run(const struct service_given *given, void (*ready)(void *context, const struct service_ready *ready),
		void *context, struct err *err) MUST_USE;

/*
 * Looks whether it could serve: places, policy, certificate, database, front. 0, or negative with *err: the first that
 * is wrong.
 */
int service_check(const struct service_given *given, struct err *err) MUST_USE;
