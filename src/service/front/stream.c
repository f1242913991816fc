/* SPDX-License-Identifier: Apache-2.0 */
#include "service/front/stream.h"

#include <string.h>

#include "service/front/exchange.h"
#include "service/front/respond.h"
#include "service/front/state.h"

/* libmicrohttpd fills its own buffer where chunks are sent: a block of ours lies idle, for each stream. */
enum { BLOCK_SIZE = 1 << 10, STALLED_S = 640, MS_PER_S = 1000 };

/* Called by libmicrohttpd while the client takes something. 0: nothing now, the connection is suspended. */
static ssize_t read_stream(void *context, uint64_t position, char *to, size_t max)
{
	struct stream *stream = context;
	size_t size = stream->out.size < max ? stream->out.size : max;

	if (stream->exchange->is_gone || stream->is_failed || buf_error(&stream->out) < 0)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (!size) {
		if (stream->is_ended)
			return MHD_CONTENT_READER_END_OF_STREAM;
		exchange_suspend_watched(stream->exchange);
		return 0;
	}
	memcpy(to, stream->out.bytes, size);
	buf_consume(&stream->out, size);
	if (stream->drained && stream->out.size <= STREAM_LOW)
		stream->drained(stream->context);
	return (ssize_t)size;
}

void stream_begin(struct stream *stream, struct exchange *exchange)
{
	stream_begin_as(stream, exchange, "application/connect+json", STREAM_ROOM);
}

void stream_begin_as(struct stream *stream, struct exchange *exchange, const char *type, size_t max)
{
	struct MHD_Response *response =
		MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_SIZE, read_stream, stream, NULL);

	stream->exchange = exchange;
	stream->last_ms = exchange->front->now_ms;
	stream->keepalive_s = connect_read_keepalive(exchange_header(exchange, "Keepalive-Ping-Interval"));
	buf_init(&stream->out, max);
	(void)MHD_set_connection_option(exchange->connection, MHD_CONNECTION_OPTION_TIMEOUT, (unsigned)STALLED_S);
	if (response) {
		respond_header(response, "Content-Type", type);
		respond_header(response, "Cache-Control", "no-store");
		respond_header(response, "X-Accel-Buffering", "no");
	}
	exchange_answer(exchange, 200, response);
}

void stream_done(struct stream *stream)
{
	buf_done(&stream->out);
}

void stream_wake(struct stream *stream)
{
	stream->last_ms = stream->exchange->front->now_ms;
	exchange_resume(stream->exchange);
}

void stream_end(struct stream *stream, enum connect_code code, const char *message)
{
	if (stream->is_ended || stream->is_failed)
		return;
	connect_put_end(&stream->out, code, message);
	stream_close(stream);
}

void stream_close(struct stream *stream)
{
	stream->is_ended = true;
	stream_wake(stream);
}

void stream_fail(struct stream *stream)
{
	stream->is_failed = true;
	exchange_resume(stream->exchange);
}

bool stream_is_silent(const struct stream *stream, uint64_t now_ms)
{
	return !stream->is_ended && !stream->is_failed &&
	       now_ms - stream->last_ms >= (uint64_t)stream->keepalive_s * MS_PER_S;
}
