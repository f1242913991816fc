/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The control plane's JSON: requests become the fields of a frame, replies become JSON, both by tables. What the
 * launcher allows of it, it decides itself. Pure. Run by atoll-front.
 */

#include "base/buf.h"
#include "service/protocol/routes.h"
#include "wire/service.h"

enum { CONTROL_WHY_SIZE = 160 };

/* What the sandboxes say of themselves: the version of envd that this service does as well as. */
#define CONTROL_ENVD_VERSION "0.6.4"

/*
 * Puts the fields that a JSON body has for a route onto a request frame that was begun. 0; -EINVAL with a sentence in
 * why; -ENOTSUP with one: it asks for what is not served; or the buffer's error.
 */
int control_read_body(const struct route *route, const void *json, size_t size, struct buf *out,
		      char why[CONTROL_WHY_SIZE]) MUST_USE;

/* The same for its query (NULL: none). */
int control_read_query(const struct route *route, const char *query, struct buf *out,
		       char why[CONTROL_WHY_SIZE]) MUST_USE;

/*
 * How many rows a client wants at most, which the reply's pages have together: a route that has ROUTE_UP_TO_LIMIT.
 * 0: as many as there are; -EINVAL with a sentence in why.
 */
int control_read_limit(const struct route *route, const char *query, size_t *ret_limit,
		       char why[CONTROL_WHY_SIZE]) MUST_USE;

/* A reply in pieces, so that several pages become one: begin, a page for each, end. */
struct control_reply {
	struct buf text;             /* owned */
	struct buf second;           /* owned: the rows again, in the other list that some forms have */
	size_t rows;                 /* so far */
};

/* max: bytes of the whole. done frees it. */
void control_reply_init(struct control_reply *reply, size_t max);
void control_reply_done(struct control_reply *reply);
void control_begin_reply(enum route_form form, struct control_reply *out);
int control_put_reply(enum route_form form, const struct service_message *reply, struct control_reply *out) MUST_USE;
/* text is whole then, or has the buffer's error. */
void control_end_reply(enum route_form form, struct control_reply *out);

/* Appends {"code":404,"message":"…"} as the control plane and files have it; more NULL: no "error_code". */
void control_put_error(struct buf *out, unsigned status, const char *message, const char *error_code);

/* Appends what says that a sandbox, or a port of it, cannot be reached; port 0: the sandbox. */
void control_put_unreachable(struct buf *out, unsigned status, const char *sandbox, unsigned port,
			     const char *message);
