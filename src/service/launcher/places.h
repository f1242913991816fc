/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where the service keeps its things: directories below atoll's own state, the secret of this server, and the context
 * of libatoll. Made at the start; nothing here is a client's. Runs in atolld.
 */

#include "service/launcher/call/daemon.h"
#include "service/launcher/store/settings.h"
#include "service/launcher/store/user.h"

/* Where the service keeps its things. */
struct service_places {
	char state[PATH_MAX];        /* of atoll */
	char directory[PATH_MAX];    /* state/service */
	char programs[PATH_MAX];     /* of atoll's programs */
	char store[PATH_MAX];
};

/* Finds them, and makes the directory (0700). Negative with *err. */
int places_find(struct service_places *ret_places, char **environment, struct err *err) MUST_USE;

/* Reads the secret that tokens are made of; makes it at the first start (0600). Negative with *err. */
int places_read_secret(struct daemon *daemon, struct err *err) MUST_USE;

/*
 * Takes the lock of the directory, so that no two daemons have the same sandboxes: a descriptor, held for as long as it
 * is open. Negative with *err: another one serves.
 */
int places_lock(const struct service_places *places, struct err *err) MUST_USE;

/* Makes the directories that stand for the project and the home of sandboxes. Negative with *err. */
int places_make(struct daemon *daemon, struct err *err) MUST_USE;

/* Opens the context: these places, and inside a home that is nobody's of this machine. Negative with *err. */
int places_open_context(struct daemon *daemon, const struct service_places *places, char **environment,
			struct err *err) MUST_USE;
