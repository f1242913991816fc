/* SPDX-License-Identifier: Apache-2.0 */
#include "service/front/respond.h"

#include <string.h>

#include "base/str.h"
#include "service/front/exchange.h"
#include "service/front/state.h"
#include "service/protocol/control.h"

enum { ERROR_MAX = 16 << 10 };

static const char text_type[] = "text/plain; charset=utf-8";
static const char json_type[] = "application/json", stream_type[] = "application/connect+json";

void respond_header(struct MHD_Response *response, const char *name, const char *value)
{
	(void)MHD_add_response_header(response, name, value);
}

/* The name of a sandbox is a secret of its own: what carries one may be shown by any page. */
bool respond_is_page_ours(const struct exchange *exchange)
{
	bool is_named = exchange->target.kind == HOST_SANDBOX;
	const struct host_page page = {
		.origin = exchange_header(exchange, "Origin"),
		.site = is_named ? NULL : exchange_header(exchange, "Sec-Fetch-Site"),
		.mode = exchange_header(exchange, "Sec-Fetch-Mode"),
		.referer = exchange_header(exchange, "Referer"),
	};

	return host_page_is_ours(&page, exchange_header(exchange, "Host"),
				 (const char *const *)exchange->front->names);
}

/* Pages read the answer only where their origin is one of ours. */
static void put_browser_headers(const struct exchange *exchange, struct MHD_Response *response)
{
	const char *origin = exchange_header(exchange, "Origin");

	respond_header(response, "X-Content-Type-Options", "nosniff");
	if (!origin || !host_origin_is_ours(origin, exchange_header(exchange, "Host"),
					    (const char *const *)exchange->front->names))
		return;
	respond_header(response, "Access-Control-Allow-Origin", origin);
	respond_header(response, "Access-Control-Expose-Headers", "x-next-token, content-disposition, content-length");
	respond_header(response, "Vary", "Origin");
}

void respond_preflight(struct exchange *exchange)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
	const char *headers = exchange_header(exchange, "Access-Control-Request-Headers");

	if (response) {
		respond_header(response, "Access-Control-Allow-Methods", "GET, POST, PUT, DELETE");
		if (headers)
			respond_header(response, "Access-Control-Allow-Headers", headers);
		respond_header(response, "Access-Control-Max-Age", "600");
	}
	exchange_answer(exchange, 204, response);
}

void exchange_answer(struct exchange *exchange, unsigned status, struct MHD_Response *response)
{
	if (!response) {
		/* Nothing can be said any more: the connection ends. */
		exchange->is_gone = true;
		exchange_resume(exchange);
		return;
	}
	if (!exchange->is_answered) {
		if (!exchange->is_relayed)
			put_browser_headers(exchange, response);
		exchange->is_answered = true;
		if (MHD_queue_response(exchange->connection, status, response) != MHD_YES)
			exchange->is_gone = true;
	}
	MHD_destroy_response(response);
	exchange_resume(exchange);
}

void exchange_answer_bytes(struct exchange *exchange, unsigned status, const char *type, struct buf *body)
{
	struct MHD_Response *response;
	void *bytes = NULL;
	size_t size = 0;

	if (body) {
		if (buf_error(body) < 0) {
			buf_reset(body);
			exchange_fail(exchange, 500, CONNECT_INTERNAL, "the answer is too large");
			return;
		}
		bytes = body->bytes;
		size = body->size;
		/* The response frees it. */
		buf_init(body, body->max);
	}
	response = MHD_create_response_from_buffer(size, bytes, MHD_RESPMEM_MUST_FREE);
	if (!response)
		free(bytes);
	else if (type)
		respond_header(response, "Content-Type", type);
	exchange_answer(exchange, status, response);
}

static void fail_unreachable(struct exchange *exchange, const char *message)
{
	unsigned port = exchange->target.port == HOST_ENVD_PORT ? 0 : exchange->target.port;
	struct buf body;

	buf_init(&body, ERROR_MAX);
	control_put_unreachable(&body, 502, exchange->target.sandbox, port, message);
	exchange_answer_bytes(exchange, 502, json_type, &body);
}

void exchange_fail(struct exchange *exchange, unsigned status, enum connect_code code, const char *message)
{
	uint32_t flags = exchange->match.route ? exchange->match.route->flags : 0;
	struct buf body;

	if (status == 502 && exchange->target.kind == HOST_SANDBOX) {
		fail_unreachable(exchange, message);
		return;
	}
	if (code == CONNECT_UNKNOWN)
		code = connect_code_from_status(status);
	buf_init(&body, ERROR_MAX);
	if (flags & ROUTE_STREAMED) {
		connect_put_end(&body, code, message);
		exchange_answer_bytes(exchange, 200, stream_type, &body);
		return;
	}
	if (flags & ROUTE_TEXT) {
		buf_put_text(&body, message);
		exchange_answer_bytes(exchange, status, text_type, &body);
		return;
	}
	if (flags & ROUTE_UNARY) {
		status = connect_code_status(code);
		connect_put_error(&body, code, message);
	} else {
		control_put_error(&body, status, message, NULL);
	}
	exchange_answer_bytes(exchange, status, json_type, &body);
}

/* As the control plane and files have it, with what the launcher adds. */
static void fail_plain(struct exchange *exchange, const struct service_message *reply, const char *message)
{
	struct MHD_Response *response;
	char seconds[16];
	struct buf body;

	buf_init(&body, ERROR_MAX);
	control_put_error(&body, reply->status, message, service_string(reply, "error_code"));
	response = MHD_create_response_from_buffer(body.size, body.bytes, MHD_RESPMEM_MUST_FREE);
	if (!response)
		buf_done(&body);
	else
		respond_header(response, "Content-Type", json_type);
	if (response && service_get(reply, "retry_after") &&
	    str_format(seconds, sizeof seconds, "%u", (unsigned)service_number(reply, "retry_after", 0)) == 0)
		respond_header(response, "Retry-After", seconds);
	exchange_answer(exchange, reply->status, response);
}

void exchange_fail_reply(struct exchange *exchange, const struct service_message *reply)
{
	const char *message = service_string(reply, "message"), *name = service_string(reply, "connect");
	uint32_t flags = exchange->match.route ? exchange->match.route->flags : 0;

	if (!message)
		message = reply->status == 502 ? "The sandbox was not found" : "the request failed";
	if (reply->status == 502 || flags & (ROUTE_STREAMED | ROUTE_UNARY | ROUTE_TEXT))
		exchange_fail(exchange, reply->status, name ? connect_code_from_name(name) : CONNECT_UNKNOWN, message);
	else
		fail_plain(exchange, reply, message);
}
