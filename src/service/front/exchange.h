/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One HTTP request and its answer. libmicrohttpd reads it; a handler (handlers.h) says what becomes of it. While the
 * launcher is asked the connection is suspended, so that its client costs nothing and can send nothing.
 * Run by atoll-front.
 */

#include <microhttpd.h>
#include <stdbool.h>

#include "base/buf.h"
#include "service/front/launcher.h"
#include "service/protocol/connect.h"
#include "service/protocol/query.h"
#include "service/protocol/routes.h"
#include "supervise/loop.h"

struct front;
struct exchange;

/* What becomes of a request; each may be NULL. data of the exchange belongs to them. */
struct exchange_handler {
	/* The head has come. May answer, but not suspend. */
	void (*begin)(struct exchange *exchange);
	/* A piece of the body: returns how much of it was taken; less: it has suspended. NULL: it is gathered. */
	size_t (*take)(struct exchange *exchange, const char *bytes, size_t size);
	/* The body is there as a whole. Answers, or suspends. */
	void (*run)(struct exchange *exchange);
	/* The exchange ends, for whatever reason. */
	void (*done)(struct exchange *exchange);
};

struct exchange {
	struct front *front;
	struct exchange *next, **link;   /* in the front's list */
	struct MHD_Connection *connection;
	char *uri;                       /* owned, as it came */
	const char *query;               /* within; NULL: none */
	const char *method;              /* borrowed from the connection */
	struct host_target target;
	struct route_match match;
	const struct exchange_handler *handler; /* NULL: the head has not come yet */
	void *data;                      /* the handler's own */
	struct buf body;
	uint64_t ticket;                 /* that it waits for; 0: none */
	launcher_replied replied;        /* to whom that goes */
	bool *is_known;                  /* of its client: set where a credential was good for something; NULL: none */
	size_t excess;                   /* bytes of the body beyond its bound */
	bool is_suspended, is_answered, is_gone, is_body_done;
	bool is_too_long;                /* the URI is cut */
	bool is_relayed;                 /* the answer is a server's inside: nothing is added to it */
	struct loop_source hangup;       /* of its socket, while it is suspended for long */
};

/* A request header, borrowed; NULL: there is none. */
const char *exchange_header(const struct exchange *exchange, const char *name);

/* Nothing is read from or written to the connection until it is resumed. Each may be called again. */
void exchange_suspend(struct exchange *exchange);
void exchange_resume(struct exchange *exchange);

/*
 * Suspends it, where it is not yet, and watches the socket meanwhile: when the client goes away is_gone is set and the
 * exchange resumed, so that the handler's reader ends it.
 */
void exchange_suspend_watched(struct exchange *exchange);

/* Answers with a response, which is consumed (NULL: there was no memory), and resumes. Once. */
void exchange_answer(struct exchange *exchange, unsigned status, struct MHD_Response *response);

/* The same with bytes of a type; body is taken over (it is empty afterwards). type NULL: there is no body. */
void exchange_answer_bytes(struct exchange *exchange, unsigned status, const char *type, struct buf *body);

/*
 * Answers with an error in the form of the route: Connect's, at the end of a stream under 200, or the control plane's.
 * code: CONNECT_UNKNOWN: what the status means. 502 is always answered as a proxy does.
 */
void exchange_fail(struct exchange *exchange, unsigned status, enum connect_code code, const char *message);

/* The same from a reply of the launcher whose status is 300 or more. */
void exchange_fail_reply(struct exchange *exchange, const struct service_message *reply);

/*
 * Begins a request to the launcher with the credentials that came with this one. NULL: it has been answered (too much
 * is under way, or a credential cannot be one). send: suspends until replied is called with the exchange; an exchange
 * that ends before is forgotten.
 */
struct buf *exchange_ask(struct exchange *exchange, enum service_operation operation);
void exchange_send(struct exchange *exchange, launcher_replied replied);

/* The user inside that the request names: 1, 0; -EINVAL, and it has been answered. */
int exchange_user(struct exchange *exchange, char out[65]);

/* The same of a request about files, whose query may name one ("username"). */
int exchange_file_user(struct exchange *exchange, char out[65]);

/* Puts what the path says (ids) as values. */
void exchange_put_path_values(const struct exchange *exchange, struct buf *out);

/* The one message of a streaming call's request. False: it has been answered, since there is none. */
bool exchange_message(struct exchange *exchange, struct connect_envelope *ret_envelope);
