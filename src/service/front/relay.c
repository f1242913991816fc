/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Handler of what is for a server inside (preview ports). The launcher gives a connected socket; the request goes on
 * with the headers that are not about one connection, and its body as it comes. The answer is read by a library's
 * parser, as it is a stranger's; it goes out bit by bit, or becomes a tunnel where the server changes the protocol.
 */

#include <http_parser.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/str.h"
#include "os/fd.h"
#include "service/front/handlers.h"
#include "service/front/state.h"
#include "service/front/tunnel.h"
#include "service/protocol/forward.h"

enum {
	HEAD_MAX = 96 << 10, OUT_FULL = 64 << 10, OUT_MAX = 256 << 10, IN_FULL = 128 << 10, IN_MAX = 512 << 10,
	READ_BYTES = 32 << 10, BLOCK_SIZE = 32 << 10, STALLED_S = 640, MESSAGE_SIZE = 256,
};

struct relay {
	struct exchange *exchange;
	int fd;                      /* of the server; FD_NONE: not yet, or no more */
	struct loop_source source;
	bool is_asked, is_chunked, is_upgrade, is_head, is_body_done;
	struct buf out;              /* to the server */
	/* its answer */
	http_parser parser;
	struct buf head;             /* NAME NUL VALUE NUL …, of the headers so far */
	bool is_value, has_head, has_end, is_broken;
	uint64_t length;             /* of the body; all ones: it does not say */
	struct buf in;               /* of the body, to the client */
	unsigned status;             /* of what failed */
	char message[MESSAGE_SIZE];
	struct MHD_UpgradeResponseHandle *upgraded;
	struct tunnel tunnel;
};

static void close_server(struct relay *relay)
{
	loop_remove(&relay->exchange->front->loop, &relay->source);
	close_fd(&relay->fd);
}

static int watch_server(struct relay *relay)
{
	bool is_wanted = relay->in.size < IN_FULL;

	struct loop *loop = &relay->exchange->front->loop;
	uint32_t events = (is_wanted ? EPOLLIN : 0) | (relay->out.size ? EPOLLOUT : 0);
	int r;

	if (relay->fd < 0 || relay->parser.upgrade)
		return 0;
	/* A hang-up would be told again and again to who is not ready to hear of it. */
	if (!events) {
		loop_remove(loop, &relay->source);
		return 0;
	}
	r = loop_change(loop, &relay->source, events);
	return r < 0 ? r : loop_add(loop, &relay->source);
}

/* Says why, once the request is whole: libmicrohttpd takes no answer before. */
static void answer_failure(struct relay *relay)
{
	if (!relay->exchange->is_answered && relay->is_body_done)
		exchange_fail(relay->exchange, relay->status, CONNECT_UNKNOWN, relay->message);
	exchange_resume(relay->exchange);
}

static void fail(struct relay *relay, unsigned status, const char *message)
{
	close_server(relay);
	relay->is_broken = relay->has_end = true;
	relay->status = status;
	if (str_copy(relay->message, sizeof relay->message, message) < 0)
		relay->message[0] = 0;
	answer_failure(relay);
}

/* ---- the answer ---- */

static ssize_t read_answer(void *context, uint64_t position, char *to, size_t max)
{
	struct relay *relay = context;
	size_t size = relay->in.size < max ? relay->in.size : max;

	if (relay->exchange->is_gone || buf_error(&relay->in) < 0)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (!size) {
		if (relay->has_end)
			return relay->is_broken ? MHD_CONTENT_READER_END_WITH_ERROR : MHD_CONTENT_READER_END_OF_STREAM;
		exchange_suspend_watched(relay->exchange);
		return 0;
	}
	memcpy(to, relay->in.bytes, size);
	buf_consume(&relay->in, size);
	return watch_server(relay) < 0 ? MHD_CONTENT_READER_END_WITH_ERROR : (ssize_t)size;
}

static void on_tunnel_end(void *context)
{
	struct relay *relay = context;

	close_server(relay);
	MHD_upgrade_action(relay->upgraded, MHD_UPGRADE_ACTION_CLOSE);
	relay->exchange->front->has_resumed = true;
}

/* MHD_UpgradeHandler: as many as it gives. */
#define UPGRADED \
	void *context, struct MHD_Connection *connection, void *slot, const char *extra, size_t size, \
		MHD_socket socket, struct MHD_UpgradeResponseHandle *handle

/* The client's connection is ours now. */
static void on_upgrade(UPGRADED)
{
	struct relay *relay = context;

	relay->upgraded = handle;
	loop_remove(&relay->exchange->front->loop, &relay->source);
	buf_init(&relay->tunnel.sides[0].out, IN_MAX);
	buf_init(&relay->tunnel.sides[1].out, IN_MAX);
	buf_put(&relay->tunnel.sides[0].out, relay->in.bytes, relay->in.size);
	buf_put(&relay->tunnel.sides[1].out, extra, size);
	relay->tunnel.ended = on_tunnel_end;
	relay->tunnel.context = relay;
	if (relay->fd < 0 || tunnel_begin(&relay->tunnel, &relay->exchange->front->loop, socket, relay->fd) < 0)
		on_tunnel_end(relay);
}

static const char *head_value(const struct relay *relay, const char *name)
{
	const char *at = (const char *)relay->head.bytes, *end = at + relay->head.size;

	while (at < end) {
		const char *value = at + strlen(at) + 1;

		if (strcasecmp(at, name) == 0)
			return value;
		at = value + strlen(value) + 1;
	}
	return NULL;
}

static void put_headers(const struct relay *relay, struct MHD_Response *response)
{
	const char *connection = head_value(relay, "Connection");
	const char *at = (const char *)relay->head.bytes, *end = at + relay->head.size;

	while (at < end) {
		const char *value = at + strlen(at) + 1;

		if (forward_has_response_header(at, connection))
			(void)MHD_add_response_header(response, at, value);
		at = value + strlen(value) + 1;
	}
}

static void answer(struct relay *relay)
{
	struct exchange *exchange = relay->exchange;
	unsigned status = relay->parser.status_code;
	uint64_t size = relay->length;
	struct MHD_Response *response;

	if (status == 101) {
		response = MHD_create_response_for_upgrade(on_upgrade, relay);
		if (response && head_value(relay, "Upgrade"))
			(void)MHD_add_response_header(response, "Upgrade", head_value(relay, "Upgrade"));
	} else {
		/* Chunked, or until it closes: the parser says all ones. */
		if (relay->parser.flags & F_CHUNKED || size == UINT64_MAX)
			size = relay->has_end ? relay->in.size : MHD_SIZE_UNKNOWN;
		response = MHD_create_response_from_callback(size, BLOCK_SIZE, read_answer, relay, NULL);
	}
	if (response)
		put_headers(relay, response);
	(void)MHD_set_connection_option(exchange->connection, MHD_CONNECTION_OPTION_TIMEOUT, (unsigned)STALLED_S);
	exchange_answer(exchange, status, response);
}

static void answer_if_ready(struct relay *relay)
{
	if (relay->exchange->is_answered || !relay->is_body_done)
		return;
	if (relay->has_head)
		answer(relay);
	else if (relay->is_broken)
		answer_failure(relay);
}

static int on_text(http_parser *parser, const char *text, size_t size, bool is_value)
{
	struct relay *relay = parser->data;

	/* What comes behind the body is not passed on. */
	if (relay->has_head)
		return 0;
	if (relay->is_value != is_value)
		buf_put_char(&relay->head, 0);
	relay->is_value = is_value;
	buf_put(&relay->head, text, size);
	return buf_error(&relay->head) < 0 || memchr(text, 0, size);
}

static int on_name(http_parser *parser, const char *text, size_t size)
{
	return on_text(parser, text, size, false);
}

static int on_value(http_parser *parser, const char *text, size_t size)
{
	return on_text(parser, text, size, true);
}

static int on_begin(http_parser *parser)
{
	struct relay *relay = parser->data;

	buf_reset(&relay->head);
	relay->is_value = false;
	return 0;
}

/* 1: there is no body; 2: nor anything else that HTTP says. */
static int on_headers(http_parser *parser)
{
	struct relay *relay = parser->data;
	unsigned status = parser->status_code;

	if (relay->is_value)
		buf_put_char(&relay->head, 0);
	if (status < 200 && status != 101)
		return 1;
	if (status == 101 && !relay->is_upgrade)
		return -1;
	relay->has_head = true;
	/* The parser counts it down. */
	relay->length = parser->content_length;
	return status == 101 ? 2 : relay->is_head;
}

static int on_body(http_parser *parser, const char *bytes, size_t size)
{
	struct relay *relay = parser->data;

	buf_put(&relay->in, bytes, size);
	return buf_error(&relay->in) < 0;
}

static int on_end(http_parser *parser)
{
	struct relay *relay = parser->data;

	relay->has_end = relay->has_head;
	return 0;
}

static const http_parser_settings settings = {
	.on_message_begin = on_begin, .on_header_field = on_name, .on_header_value = on_value,
	.on_headers_complete = on_headers, .on_body = on_body, .on_message_complete = on_end,
};

static void read_server(struct relay *relay)
{
	static char bytes[READ_BYTES];
	ssize_t n = recv(relay->fd, bytes, sizeof bytes, 0);
	size_t used;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	/* size 0 tells the parser of the end. */
	used = n >= 0 ? http_parser_execute(&relay->parser, &settings, bytes, (size_t)n) : 0;
	if (relay->parser.upgrade && relay->has_head && n > 0) {
		/* What follows is no business of the parser. */
		buf_put(&relay->in, bytes + used, (size_t)n - used);
		loop_remove(&relay->exchange->front->loop, &relay->source);
	} else if (n < 0 || HTTP_PARSER_ERRNO(&relay->parser) != HPE_OK) {
		fail(relay, 502, "the server on this port closed, or speaks no HTTP");
		return;
	} else if (n == 0 && !relay->has_end) {
		fail(relay, 502, "the server on this port closed before it answered");
		return;
	}
	if (relay->has_end && !relay->parser.upgrade)
		close_server(relay);
	answer_if_ready(relay);
	if (relay->exchange->is_answered)
		exchange_resume(relay->exchange);
}

/* ---- the request ---- */

static void write_server(struct relay *relay)
{
	while (relay->out.size && relay->fd >= 0) {
		ssize_t n = send(relay->fd, relay->out.bytes, relay->out.size, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN) {
			/* It may have answered already: that is read. */
			buf_reset(&relay->out);
			break;
		}
		if (n < 0)
			break;
		buf_consume(&relay->out, (size_t)n);
	}
	if (relay->out.size < OUT_FULL && !relay->is_body_done)
		exchange_resume(relay->exchange);
}

static int on_ready(void *context, uint32_t events)
{
	struct relay *relay = context;

	if (events & EPOLLOUT)
		write_server(relay);
	if (relay->fd >= 0 && events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		read_server(relay);
	if (watch_server(relay) < 0)
		fail(relay, 502, "the server on this port cannot be reached");
	return 0;
}

static enum MHD_Result on_request_header(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct relay *relay = context;

	if (forward_has_request_header(name, exchange_header(relay->exchange, "Connection")))
		(void)forward_put_header(&relay->out, name, value ? value : "");
	return MHD_YES;
}

/* The head of the request as the server gets it. */
static bool put_head(struct relay *relay, const char *mask)
{
	struct exchange *exchange = relay->exchange;
	const char *length = exchange_header(exchange, "Content-Length"), *host = exchange_header(exchange, "Host");
	char *target = exchange->query ? str_printf("%s?%s", exchange->uri, exchange->query) : str_dup(exchange->uri);
	bool is_line = target && forward_put_line(&relay->out, exchange->method, target);

	free(target);
	if (!is_line)
		return false;
	buf_put_text(&relay->out, "Host: ");
	forward_put_host(&relay->out, mask ? mask : host, exchange->target.port);
	buf_put_text(&relay->out, "\r\n");
	MHD_get_connection_values(exchange->connection, MHD_HEADER_KIND, on_request_header, relay);
	(void)forward_put_header(&relay->out, "X-Forwarded-Host", host);
	(void)forward_put_header(&relay->out, "X-Forwarded-Proto", exchange->front->certificate ? "https" : "http");
	relay->is_chunked = !length && exchange_header(exchange, "Transfer-Encoding");
	if (relay->is_chunked)
		buf_put_text(&relay->out, "Transfer-Encoding: chunked\r\n");
	else if (length)
		(void)forward_put_header(&relay->out, "Content-Length", length);
	if (relay->is_upgrade) {
		(void)forward_put_header(&relay->out, "Upgrade", exchange_header(exchange, "Upgrade"));
		buf_put_text(&relay->out, "Connection: Upgrade\r\n\r\n");
	} else {
		buf_put_text(&relay->out, "Connection: close\r\n\r\n");
	}
	return buf_error(&relay->out) == 0;
}

static void on_dialled(void *context, struct service_message *reply)
{
	struct exchange *exchange = context;
	struct relay *relay = exchange->data;

	exchange->ticket = 0;
	if (reply->status >= 300) {
		fail(relay, reply->status,
		     service_string(reply, "message") ? service_string(reply, "message") : "The sandbox was not found");
		return;
	}
	relay->fd = service_take_fd(reply, "socket");
	relay->source = (struct loop_source){ .fd = relay->fd, .ready = on_ready, .context = relay };
	if (relay->fd < 0 || fd_set_nonblocking(relay->fd, true) < 0 ||
	    !put_head(relay, service_string(reply, "mask_host"))) {
		fail(relay, 400, "the request cannot be passed on");
		return;
	}
	if (relay->is_body_done && relay->is_chunked)
		buf_put_text(&relay->out, "0\r\n\r\n");
	write_server(relay);
	if (watch_server(relay) < 0)
		fail(relay, 502, "the server on this port cannot be reached");
	else if (relay->is_body_done)
		exchange_suspend_watched(exchange);
}

static void ask(struct relay *relay)
{
	struct exchange *exchange = relay->exchange;
	const char *token = exchange_header(exchange, "E2b-Traffic-Access-Token");
	struct buf *out;

	relay->is_asked = true;
	out = exchange_ask(exchange, SERVICE_DIAL);
	if (!out)
		return;
	field_put_u64(out, "port", exchange->target.port);
	if (token)
		field_put_string(out, "traffic_token", token);
	exchange_send(exchange, on_dialled);
}

static size_t take_body(struct exchange *exchange, const char *bytes, size_t size)
{
	struct relay *relay = exchange->data;

	if (!relay || relay->is_broken || relay->has_head) {
		exchange->excess += size;
		return size;
	}
	if (!relay->is_asked)
		ask(relay);
	if (exchange->is_answered || exchange->is_gone)
		return size;
	if (relay->fd < 0 || relay->out.size >= OUT_FULL) {
		exchange_suspend_watched(exchange);
		return 0;
	}
	if (size > OUT_FULL)
		size = OUT_FULL;
	if (relay->is_chunked)
		buf_printf(&relay->out, "%zx\r\n", size);
	buf_put(&relay->out, bytes, size);
	if (relay->is_chunked)
		buf_put_text(&relay->out, "\r\n");
	write_server(relay);
	if (watch_server(relay) < 0)
		fail(relay, 502, "the server on this port cannot be reached");
	return size;
}

static void run(struct exchange *exchange)
{
	struct relay *relay = exchange->data;

	if (!relay)
		return;
	relay->is_body_done = true;
	if (!relay->is_asked) {
		ask(relay);
		return;
	}
	if (relay->fd >= 0 && relay->is_chunked) {
		buf_put_text(&relay->out, "0\r\n\r\n");
		write_server(relay);
		if (watch_server(relay) < 0)
			relay->is_broken = true;
	}
	answer_if_ready(relay);
	if (!exchange->is_answered)
		exchange_suspend_watched(exchange);
}

static void begin(struct exchange *exchange)
{
	struct relay *relay = calloc(1, sizeof *relay);

	if (!relay) {
		exchange_fail(exchange, 503, CONNECT_UNAVAILABLE, "there is no memory");
		return;
	}
	relay->exchange = exchange;
	relay->fd = FD_NONE;
	relay->is_head = str_equal(exchange->method, "HEAD");
	relay->is_upgrade = forward_is_upgrade(exchange_header(exchange, "Connection"),
					       exchange_header(exchange, "Upgrade"));
	exchange->is_relayed = true;
	buf_init(&relay->out, OUT_MAX);
	buf_init(&relay->in, IN_MAX);
	buf_init(&relay->head, HEAD_MAX);
	http_parser_init(&relay->parser, HTTP_RESPONSE);
	relay->parser.data = relay;
	exchange->data = relay;
}

static void done(struct exchange *exchange)
{
	struct relay *relay = exchange->data;

	if (!relay)
		return;
	if (relay->upgraded)
		tunnel_done(&relay->tunnel);
	close_server(relay);
	buf_done(&relay->out);
	buf_done(&relay->in);
	buf_done(&relay->head);
	free(relay);
}

const struct exchange_handler port_handler = { .begin = begin, .take = take_body, .run = run, .done = done };
