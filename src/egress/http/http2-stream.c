/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/http/http2-stream.h"

#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "egress/message/http1-head.h"

enum { PENDING_KEPT_MAX = 32 << 10 };

enum http2_side http2_side_of(const struct http2 *http2, const nghttp2_session *session)
{
	return session == http2->sessions[HTTP2_INSIDE] ? HTTP2_INSIDE : HTTP2_OUTSIDE;
}

enum http2_side http2_other(enum http2_side side)
{
	return side == HTTP2_INSIDE ? HTTP2_OUTSIDE : HTTP2_INSIDE;
}

void http2_nvs_add(struct http2_nvs *nvs, const char *name, const char *value, uint8_t flags)
{
	nvs->list[nvs->count++] = (nghttp2_nv){ (uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), flags };
}

void http2_nvs_add_fields(struct http2_nvs *nvs, const struct http1_head *head)
{
	for (size_t i = 0; i < head->field_count; i++) {
		const struct http1_field *field = &head->fields[i];

		/* All that may stand there (RFC 9113 8.2.2), and what servers of gRPC insist on. */
		bool is_te = http1_name_is(field->name, "te") && strcasecmp(field->value, "trailers") != 0;

		if (http1_name_is(field->name, "host") || is_te)
			continue;
		/* Lower case is a rule here (RFC 9113 8.2), and so is a name that a hook put there: it is no copy. */
		for (char *at = (char *)(uintptr_t)field->name; *at; at++)
			if (*at >= 'A' && *at <= 'Z')
				*at |= 0x20;
		http2_nvs_add(nvs, field->name, field->value,
			      field->is_secret ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE);
	}
}

struct http2_stream *http2_stream_new(struct http2 *http2, int32_t id)
{
	struct http2_stream *stream = calloc(1, sizeof *stream);

	if (!stream)
		return NULL;
	stream->http2 = http2;
	stream->to[HTTP2_INSIDE].id = id;
	stream->head.kind = HTTP1_REQUEST;
	stream->gathering = &stream->head;
	for (int side = 0; side < HTTP2_SIDE_COUNT; side++)
		buf_init(&stream->to[side].pending, HTTP2_STREAM_WINDOW + EXCHANGE_REFUSAL_MAX);
	buf_init(&stream->held, HTTP2_STREAM_WINDOW);
	stream->next = http2->streams;
	stream->link = &http2->streams;
	if (stream->next)
		stream->next->link = &stream->next;
	http2->streams = stream;
	http2->stream_count++;
	return stream;
}

void http2_stream_free(struct http2_stream *stream)
{
	*stream->link = stream->next;
	if (stream->next)
		stream->next->link = stream->link;
	stream->http2->stream_count--;
	for (int side = 0; side < HTTP2_SIDE_COUNT; side++)
		buf_done(&stream->to[side].pending);
	buf_done(&stream->held);
	http1_head_reset(&stream->head);
	http1_head_reset(&stream->trailers);
	target_done(&stream->target);
	free(stream->authority);
	free(stream->path);
	free(stream);
}

void http2_stream_tell(struct http2_stream *stream)
{
	stream->record.method = stream->method;
	stream->record.path = stream->record.path ? stream->record.path : "";
	stream->record.problem = stream->problem;
	if (stream->given.answer)
		stream->record.bytes_in = stream->given.done;
	if (stream->http2->hooks.over)
		stream->http2->hooks.over(stream->http2->hooks.context, &stream->record);
	recorded_end(stream->recorded, stream->is_answered && stream->to[HTTP2_INSIDE].is_whole);
	stream->recorded = NULL;
}

/* What has drained keeps no more memory than the next piece needs: there may be many streams that stay open. */
static void shrink(struct buf *pending)
{
	size_t max = pending->max;

	if (pending->size || pending->capacity <= PENDING_KEPT_MAX)
		return;
	buf_done(pending);
	buf_init(pending, max);
}

void http2_stream_drop(struct http2_stream *stream, enum http2_side to)
{
	size_t size = stream->to[to].pending.size + stream->to[to].withheld;

	if (to == HTTP2_OUTSIDE) {
		size -= stream->early < size ? stream->early : size;
		stream->early = 0;
	}
	stream->to[to].withheld = 0;
	/* Of an answer of our own nothing was ever counted. */
	if (size && (to == HTTP2_OUTSIDE || stream->is_answered))
		nghttp2_session_consume_connection(stream->http2->sessions[http2_other(to)], size);
	buf_reset(&stream->to[to].pending);
	shrink(&stream->to[to].pending);
}

/* What stands in for the server's answer. */
static ssize_t read_given(nghttp2_session *session, struct http2_stream *stream, uint8_t *bytes, size_t max,
			  uint32_t *flags)
{
	const struct answer *answer = stream->given.answer;
	enum answer_state state;
	size_t size = answer_read(&stream->given, bytes, max, &state);

	/* Resets the stream. */
	if (state == ANSWER_CUT)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	if (state == ANSWER_MORE)
		return (ssize_t)size;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (answer->trailers && answer->trailers[0]) {
		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		if (answer_submit_trailers(&stream->given, session, stream->to[HTTP2_INSIDE].id) != 0)
			return NGHTTP2_ERR_CALLBACK_FAILURE;
	}
	return (ssize_t)size;
}

void http2_count_held(const struct http2 *http2, size_t bytes[HTTP2_SIDE_COUNT])
{
	for (const struct http2_stream *stream = http2->streams; stream; stream = stream->next) {
		/* As text and as what is to be sent. */
		bytes[stream->is_answered ? HTTP2_INSIDE : HTTP2_OUTSIDE] += 2 * stream->gathered_bytes;
		bytes[HTTP2_OUTSIDE] += stream->held.capacity;
		for (int to = 0; to < HTTP2_SIDE_COUNT; to++)
			bytes[to] += stream->to[to].pending.capacity;
	}
}

/* So many bytes that came from there have left. */
static void consume(struct http2_stream *stream, enum http2_side from, size_t size)
{
	nghttp2_session *session = stream->http2->sessions[from];
	size_t early = from != HTTP2_INSIDE ? 0 : size < stream->early ? size : stream->early;

	stream->early -= early;
	if (stream->to[from].id && early)
		nghttp2_session_consume_stream(session, stream->to[from].id, early);
	if (stream->to[from].id)
		nghttp2_session_consume(session, stream->to[from].id, size - early);
	else if (from == HTTP2_INSIDE || stream->is_answered)
		nghttp2_session_consume_connection(session, size - early);
}

ssize_t http2_stream_read(nghttp2_session *session, int32_t id, uint8_t *bytes, size_t max, uint32_t *flags,
			  nghttp2_data_source *source, void *context)
{
	struct http2_stream *stream = source->ptr;
	enum http2_side to = http2_side_of(context, session), from = http2_other(to);
	struct buf *pending = &stream->to[to].pending;
	size_t size = pending->size < max ? pending->size : max;
	struct http2_nvs nvs = { .count = 0 };

	if (to == HTTP2_INSIDE && stream->given.answer)
		return read_given(session, stream, bytes, max, flags);
	if (!size && !stream->to[to].is_whole)
		return NGHTTP2_ERR_DEFERRED;
	if (size) {
		memcpy(bytes, pending->bytes, size);
		buf_consume(pending, size);
		shrink(pending);
		consume(stream, from, size);
	}
	if (pending->size || !stream->to[to].is_whole)
		return (ssize_t)size;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (to == HTTP2_INSIDE && stream->has_trailers) {
		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		http2_nvs_add_fields(&nvs, &stream->trailers);
		if (nghttp2_submit_trailer(session, id, nvs.list, nvs.count) != 0)
			return NGHTTP2_ERR_CALLBACK_FAILURE;
	}
	return (ssize_t)size;
}

void http2_stream_resume(struct http2_stream *stream, enum http2_side to)
{
	/* Fails where nothing was deferred, which is as well. */
	if (stream->to[to].id)
		nghttp2_session_resume_data(stream->http2->sessions[to], stream->to[to].id);
}

int http2_stream_answer(struct http2_stream *stream, struct http2_nvs *nvs)
{
	nghttp2_data_provider provider = { .source.ptr = stream, .read_callback = http2_stream_read };
	bool has_body = !stream->to[HTTP2_INSIDE].is_whole || stream->to[HTTP2_INSIDE].pending.size;

	return nghttp2_submit_response(stream->http2->sessions[HTTP2_INSIDE], stream->to[HTTP2_INSIDE].id, nvs->list,
				       nvs->count, has_body ? &provider : NULL);
}

int http2_stream_refuse(struct http2_stream *stream, unsigned status, const char *reason,
			const struct decision *decision)
{
	struct buf *body = &stream->to[HTTP2_INSIDE].pending;
	char number[16], size[16], wait[16], limit[NET_LIMIT_KEY_SIZE];
	struct http2_nvs nvs = { .count = 0 };
	uint32_t wait_s = status == 429 ? stream->record.wait_s : 0;

	stream->record.status = status;
	buf_reset(body);
	exchange_limit_key(&stream->record, limit);
	exchange_put_reason(reason, wait_s ? limit : decision ? decision->rule.id : NULL,
			    wait_s ? exchange_wait_hint : decision ? decision->hint : NULL, body);
	stream->to[HTTP2_INSIDE].is_whole = true;
	if (buf_error(body) < 0 || str_format(number, sizeof number, "%u", status) < 0 ||
	    str_format(size, sizeof size, "%zu", body->size) < 0 || str_format(wait, sizeof wait, "%u", wait_s) < 0)
		return NGHTTP2_ERR_NOMEM;
	http2_nvs_add(&nvs, ":status", number, NGHTTP2_NV_FLAG_NONE);
	http2_nvs_add(&nvs, "content-type", "application/json", NGHTTP2_NV_FLAG_NONE);
	http2_nvs_add(&nvs, "content-length", size, NGHTTP2_NV_FLAG_NONE);
	http2_nvs_add(&nvs, "cache-control", "no-store", NGHTTP2_NV_FLAG_NONE);
	if (wait_s)
		http2_nvs_add(&nvs, "retry-after", wait, NGHTTP2_NV_FLAG_NONE);
	return http2_stream_answer(stream, &nvs);
}
