/* SPDX-License-Identifier: Apache-2.0 */
#include "service/function/invocation.h"

#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "os/fd.h"
#include "service/front/extension.h"
#include "service/front/respond.h"

enum { RESULT_MAX = 6 << 20, LOG_MAX = 8000, ANSWER_MAX = 64 << 10, HEAD_SIZE = 32 };
enum { PIECE = 64 << 10, PIECES_A_TURN = 8 };
enum { INPUT, OUTPUT, ERRORS, STREAM_COUNT };

static const char *const stream_keys[] = { "stdin", "stdout", "stderr" };

struct invocation {
	struct exchange *exchange;
	uint64_t number;                 /* 0: it has no instance */
	struct loop_source streams[STREAM_COUNT];   /* owned; FD_NONE: at its end */
	char head[HEAD_SIZE];            /* how long the event is: the rest of the line that atolld began */
	size_t head_size, sent;
	struct buf result, log;
	uint64_t dropped;                /* bytes of the log */
	bool is_json, is_cold, is_told, is_too_large;
};

/* ---- the answer ---- */

static void add_headers(const struct invocation *invocation, const struct service_message *reply,
			struct MHD_Response *response)
{
	char text[32];

	(void)!str_format(text, sizeof text, "%llu", (unsigned long long)invocation->number);
	respond_header(response, "X-Atoll-Invocation", text);
	(void)!str_format(text, sizeof text, "%llu", (unsigned long long)service_number(reply, "us", 0));
	respond_header(response, "X-Atoll-Duration-Us", text);
	respond_header(response, "X-Atoll-Cold", invocation->is_cold ? "1" : "0");
}

static void say_why(const struct invocation *invocation, const struct service_message *reply, char out[128])
{
	const char *ended = service_string(reply, "ended");
	unsigned code = (unsigned)service_number(reply, "exit", 0);
	unsigned signal = (unsigned)service_number(reply, "signal", 0);
	int r;

	if (invocation->is_too_large)
		r = str_format(out, 128, "the result is larger than %d MiB", RESULT_MAX >> 20);
	else if (str_equal(ended, "time"))
		r = str_copy(out, 128, "the function did not end within its time");
	else if (str_equal(ended, "no result"))
		r = str_copy(out, 128, "the function ended without a result");
	else if (str_equal(ended, "exit"))
		r = str_format(out, 128, "the function failed (exit code %u)", code);
	else if (str_equal(ended, "signal"))
		r = str_format(out, 128, "the function was ended by signal %u", signal);
	else
		r = str_format(out, 128, "the function was ended (%s)", ended ? ended : "lost");
	if (r < 0)
		out[0] = 0;
}

static unsigned put_failure(struct invocation *invocation, const struct service_message *reply, struct buf *body)
{
	unsigned status = str_equal(service_string(reply, "ended"), "time") && !invocation->is_too_large ? 504 : 502;
	struct json json;
	char why[128];

	say_why(invocation, reply, why);
	json_init(&json, body);
	json_object_begin(&json, NULL);
	json_u64(&json, "code", status);
	json_string(&json, "message", why);
	json_u64(&json, "invocation", invocation->number);
	json_string(&json, "log", buf_text(&invocation->log));
	json_object_end(&json);
	return status;
}

static void on_ended(void *context, struct service_message *reply)
{
	struct exchange *exchange = context;
	struct invocation *invocation = exchange->data;
	bool is_good = reply->status < 300 && str_equal(service_string(reply, "ended"), "exit") &&
		       !service_number(reply, "exit", 0) && !invocation->is_too_large;
	struct MHD_Response *response;
	unsigned status = 200;
	struct buf body;

	exchange->ticket = 0;
	if (reply->status == 404) {
		exchange_fail(exchange, 502, CONNECT_UNAVAILABLE, "the function was removed");
		return;
	}
	if (reply->status >= 300) {
		exchange_fail_reply(exchange, reply);
		return;
	}
	buf_init(&body, ANSWER_MAX);
	if (!is_good)
		status = put_failure(invocation, reply, &body);
	response = is_good ? MHD_create_response_from_buffer(invocation->result.size, invocation->result.bytes,
							     MHD_RESPMEM_MUST_COPY) :
			     MHD_create_response_from_buffer(body.size, body.bytes, MHD_RESPMEM_MUST_COPY);
	buf_done(&body);
	if (response) {
		add_headers(invocation, reply, response);
		respond_header(response, "X-Content-Type-Options", "nosniff");
		respond_header(response, "Content-Type",
			       is_good && !invocation->is_json ? "application/octet-stream" : "application/json");
	}
	exchange_answer(exchange, status, response);
}

/* ---- its end ---- */

static void close_stream(struct invocation *invocation, int which)
{
	struct loop_source *source = &invocation->streams[which];

	loop_remove(front_loop(invocation->exchange->front), source);
	close_fd(&source->fd);
}

static void put_end(struct invocation *invocation, bool is_cancelled, struct buf *out)
{
	field_put_u64(out, "invocation", invocation->number);
	if (is_cancelled)
		field_put_u64(out, "cancelled", 1);
	if (invocation->is_json && !invocation->result.size)
		field_put_u64(out, "failed", 1);
	field_put_string(out, "log", buf_text(&invocation->log));
	field_put_u64(out, "dropped", invocation->dropped);
}

/* All was read, or more than is wanted. */
static void end(struct invocation *invocation)
{
	struct buf *out;

	for (int i = 0; i < STREAM_COUNT; i++)
		close_stream(invocation, i);
	invocation->is_told = true;
	out = exchange_ask(invocation->exchange, SERVICE_FUNCTION_END);
	if (!out)
		return;
	put_end(invocation, invocation->is_too_large, out);
	exchange_send(invocation->exchange, on_ended);
}

/* ---- its streams ---- */

/* The log is text: what is none is shown. */
static void keep_log(struct invocation *invocation, const char *bytes, size_t size)
{
	size_t room = LOG_MAX - invocation->log.size, taken = size < room ? size : room;

	for (size_t i = 0; i < taken; i++)
		buf_put_char(&invocation->log, bytes[i] ? bytes[i] : '?');
	invocation->dropped += size - taken;
}

/* 1: there may be more; 0: nothing more now; -EPIPE: its end. */
static int read_piece(struct invocation *invocation, int which)
{
	char bytes[PIECE];
	ssize_t n = read(invocation->streams[which].fd, bytes, sizeof bytes);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -EPIPE;
	if (n == 0)
		return -EPIPE;
	if (which == ERRORS)
		keep_log(invocation, bytes, (size_t)n);
	else
		buf_put(&invocation->result, bytes, (size_t)n);
	return 1;
}

static int on_output(struct invocation *invocation, int which)
{
	int r = 1;

	for (int i = 0; i < PIECES_A_TURN && r > 0; i++)
		r = read_piece(invocation, which);
	invocation->is_too_large = buf_error(&invocation->result) < 0;
	if (r < 0)
		close_stream(invocation, which);
	if (invocation->is_too_large || (invocation->streams[OUTPUT].fd < 0 && invocation->streams[ERRORS].fd < 0))
		end(invocation);
	return 0;
}

static int on_result(void *context, uint32_t events)
{
	return on_output(context, OUTPUT);
}

static int on_log(void *context, uint32_t events)
{
	return on_output(context, ERRORS);
}

/* A function need not read its event to the end. */
static int on_input(void *context, uint32_t events)
{
	struct invocation *invocation = context;
	const struct buf *event = &invocation->exchange->body;
	bool is_head = invocation->sent < invocation->head_size;
	size_t at = is_head ? invocation->sent : invocation->sent - invocation->head_size;
	const char *from = is_head ? invocation->head : (const char *)event->bytes;
	size_t size = is_head ? invocation->head_size : event->size;
	ssize_t n = at < size ? write(invocation->streams[INPUT].fd, from + at, size - at) : 0;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n > 0)
		invocation->sent += (size_t)n;
	if (n < 0 || invocation->sent == invocation->head_size + event->size)
		close_stream(invocation, INPUT);
	return 0;
}

/* ---- its begin ---- */

static int take_streams(struct invocation *invocation, struct service_message *reply)
{
	static int (*const ready[])(void *context, uint32_t events) = { on_input, on_result, on_log };
	struct loop *loop = front_loop(invocation->exchange->front);
	int r = 0;

	for (int i = 0; i < STREAM_COUNT && r == 0; i++) {
		struct loop_source *source = &invocation->streams[i];

		*source = (struct loop_source){ .fd = service_take_fd(reply, stream_keys[i]), .ready = ready[i],
						.events = i == INPUT ? EPOLLOUT : EPOLLIN, .context = invocation };
		r = source->fd < 0 ? -EBADF : fd_set_nonblocking(source->fd, true);
		if (r == 0)
			r = loop_add(loop, source);
	}
	return r;
}

static void on_streams(void *context, struct service_message *reply)
{
	struct exchange *exchange = context;
	struct invocation *invocation = exchange->data;

	exchange->ticket = 0;
	if (reply->status >= 300) {
		exchange_fail_reply(exchange, reply);
		return;
	}
	invocation->number = service_number(reply, "invocation", 0);
	invocation->is_cold = service_number(reply, "cold", 0);
	invocation->is_json = service_number(reply, "json", 0);
	invocation->head_size = (size_t)snprintf(invocation->head, sizeof invocation->head, "%zu\n",
						 exchange->body.size);
	if (take_streams(invocation, reply) < 0) {
		exchange_fail(exchange, 503, CONNECT_UNAVAILABLE, "the service has no descriptor left");
		return;
	}
	exchange_suspend_watched(exchange);
}

void invocation_run(struct exchange *exchange)
{
	struct invocation *invocation = calloc(1, sizeof *invocation);
	struct buf *out;

	if (!invocation) {
		exchange_fail(exchange, 503, CONNECT_UNAVAILABLE, "there is no memory");
		return;
	}
	invocation->exchange = exchange;
	for (int i = 0; i < STREAM_COUNT; i++)
		invocation->streams[i].fd = FD_NONE;
	buf_init(&invocation->result, RESULT_MAX);
	buf_init(&invocation->log, LOG_MAX + 1);
	exchange->data = invocation;
	out = exchange_ask(exchange, SERVICE_FUNCTION_INVOKE);
	if (!out)
		return;
	exchange_put_path_values(exchange, out);
	exchange_send(exchange, on_streams);
}

/* Whoever goes away wants no result: what still runs is ended. */
void invocation_done(struct exchange *exchange)
{
	struct invocation *invocation = exchange->data;
	struct launcher *launcher = front_launcher(exchange->front);
	uint64_t ticket = 0;
	struct buf *out;

	for (int i = 0; i < STREAM_COUNT; i++)
		close_stream(invocation, i);
	out = invocation->number && !invocation->is_told ?
		      launcher_begin(launcher, SERVICE_FUNCTION_END, &ticket) : NULL;
	if (out) {
		put_end(invocation, true, out);
		/* It ends with its time where this cannot be said. */
		(void)!launcher_send(launcher, ticket, NULL, NULL);
	}
	buf_done(&invocation->result);
	buf_done(&invocation->log);
	free(invocation);
}
