/* SPDX-License-Identifier: Apache-2.0 */

/* Handler of the control plane: a request is one operation, a reply is JSON; some lists are asked for page by page. */

#include "service/protocol/control.h"

#include <string.h>

#include "base/str.h"
#include "service/front/handlers.h"
#include "service/front/respond.h"
#include "service/front/state.h"

enum { REPLY_MAX = 8 << 20, PAGES_MAX = 256, NEXT_SIZE = 257 };

struct control {
	struct control_reply reply;
	size_t rows_max, pages;      /* rows_max 0: as many as there are */
	char next[NEXT_SIZE];        /* of the page to ask for; "": the first */
};

static void on_reply(void *context, struct service_message *reply);

/* How the client reaches this service: where it sends files to. What it claims concerns it alone. */
static void put_address(const struct exchange *exchange, struct buf *out)
{
	const char *scheme = exchange_header(exchange, "X-Forwarded-Proto"), *host = exchange_header(exchange, "Host");

	if (host && *host)
		field_put_string(out, "host", host);
	field_put_u64(out, "secure", exchange->front->certificate || (scheme && str_equal(scheme, "https")));
}

static void ask(struct exchange *exchange)
{
	const struct route *route = exchange->match.route;
	struct control *control = exchange->data;
	char why[CONTROL_WHY_SIZE] = "";
	struct buf *out = exchange_ask(exchange, route->operation);
	int r;

	if (!out)
		return;
	exchange_put_path_values(exchange, out);
	if (route->operation == SERVICE_BUILD_FILE)
		put_address(exchange, out);
	r = control_read_query(route, exchange->query, out, why);
	if (r == 0)
		r = control_read_body(route, exchange->body.bytes, exchange->body.size, out, why);
	if (r == 0 && route->flags & ROUTE_ALL_PAGES && control->next[0])
		field_put_string(out, "next", control->next);
	if (r == 0 && control->rows_max) {
		size_t left = control->rows_max - control->reply.rows;

		field_put_u64(out, "limit", left < SERVICE_ROWS_MAX ? left : SERVICE_ROWS_MAX);
	}
	if (r == 0) {
		exchange_send(exchange, on_reply);
		return;
	}
	exchange->ticket = 0;
	if (r == -ENOTSUP)
		exchange_fail(exchange, 501, CONNECT_UNIMPLEMENTED, why);
	else if (r == -EINVAL)
		exchange_fail(exchange, 400, CONNECT_INVALID_ARGUMENT, why);
	else
		exchange_fail(exchange, 413, CONNECT_RESOURCE_EXHAUSTED, "the request is too large");
}

static void finish(struct exchange *exchange, const struct service_message *reply)
{
	const struct route *route = exchange->match.route;
	struct control *control = exchange->data;
	const char *next = service_string(reply, "next");
	struct MHD_Response *response;

	control_end_reply(route->form, &control->reply);
	if (buf_error(&control->reply.text) < 0) {
		exchange_fail(exchange, 500, CONNECT_INTERNAL, "the answer is too large");
		return;
	}
	response = MHD_create_response_from_buffer(control->reply.text.size, control->reply.text.bytes,
						   MHD_RESPMEM_MUST_COPY);
	if (response && control->reply.text.size)
		respond_header(response, "Content-Type", "application/json");
	if (response && next && !(route->flags & ROUTE_ALL_PAGES))
		respond_header(response, "x-next-token", next);
	exchange_answer(exchange, reply->status, response);
}

static void on_reply(void *context, struct service_message *reply)
{
	struct exchange *exchange = context;
	const struct route *route = exchange->match.route;
	struct control *control = exchange->data;
	const char *next = service_string(reply, "next");

	exchange->ticket = 0;
	if (reply->status >= 300) {
		exchange_fail_reply(exchange, reply);
		return;
	}
	if (control->pages++ == 0)
		control_begin_reply(route->form, &control->reply);
	if (control_put_reply(route->form, reply, &control->reply) < 0) {
		exchange_fail(exchange, 500, CONNECT_INTERNAL, "the answer is too large");
		return;
	}
	if (next && route->flags & ROUTE_ALL_PAGES && control->pages < PAGES_MAX &&
	    (!control->rows_max || control->reply.rows < control->rows_max) &&
	    str_copy(control->next, sizeof control->next, next) == 0)
		ask(exchange);
	else
		finish(exchange, reply);
}

static void run(struct exchange *exchange)
{
	struct control *control = calloc(1, sizeof *control);
	char why[CONTROL_WHY_SIZE] = "";

	if (!control) {
		exchange_fail(exchange, 503, CONNECT_UNAVAILABLE, "there is no memory");
		return;
	}
	control_reply_init(&control->reply, REPLY_MAX);
	exchange->data = control;
	if (control_read_limit(exchange->match.route, exchange->query, &control->rows_max, why) < 0)
		exchange_fail(exchange, 400, CONNECT_INVALID_ARGUMENT, why);
	else
		ask(exchange);
}

static void done(struct exchange *exchange)
{
	struct control *control = exchange->data;

	if (!control)
		return;
	control_reply_done(&control->reply);
	free(control);
}

const struct exchange_handler control_handler = { .run = run, .done = done };

/* GET /health of a sandbox: 204, or 502 where it is gone. */
static void on_health(void *context, struct service_message *reply)
{
	struct exchange *exchange = context;

	exchange->ticket = 0;
	if (reply->status >= 300)
		exchange_fail_reply(exchange, reply);
	else
		exchange_answer_bytes(exchange, 204, NULL, NULL);
}

static void run_health(struct exchange *exchange)
{
	if (exchange_ask(exchange, SERVICE_HEALTH))
		exchange_send(exchange, on_health);
}

const struct exchange_handler health_handler = { .run = run_health };
