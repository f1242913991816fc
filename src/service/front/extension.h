/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a program adds to the front: who handles the routes of ROUTE_CODE and ROUTE_FUNCTION, and what of the front
 * that may use. The front includes nothing of it. Run by atoll-front.
 */

#include <stdint.h>

struct exchange_handler;
struct front;
struct launcher;
struct loop;
struct service_message;

/* Each is called from the loop. */
struct front_extension {
	const struct exchange_handler *handler;
	const struct exchange_handler *function;   /* of ROUTE_FUNCTION; NULL: those are not served */
	const struct exchange_handler *archive;    /* of ROUTE_ARCHIVE; NULL: those are not served */
	/* SERVICE_EXIT: a command has ended. SERVICE_GONE: a sandbox has. */
	void (*exit)(struct front *front, const struct service_message *event);
	void (*gone)(struct front *front, const char *sandbox);
	/* Now and then: at least once a second. */
	void (*tick)(struct front *front);
};

/* Where sources of events are added, which stay their owners'; borrowed. */
struct loop *front_loop(struct front *front);

/* Whom it asks (launcher.h); borrowed. */
struct launcher *front_launcher(struct front *front);

/* Monotonic, of this turn of the loop. */
uint64_t front_now_ms(const struct front *front);

/* What the extension keeps: NULL at first. It is never freed by the front. */
void **front_extension_state(struct front *front);
