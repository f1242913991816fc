/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/http/http2.h"

#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "egress/http/http2-request.h"
#include "egress/message/http1-head.h"

/* What a field costs beside its bytes, by the rule of what we tell our peers to keep to (RFC 9113 6.5.2). */
enum { FIELD_OVERHEAD = 32 };

/* --- What nghttp2 tells. --- */

static struct http2_stream *find_stream(nghttp2_session *session, int32_t id)
{
	return id ? nghttp2_session_get_stream_user_data(session, id) : NULL;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct http2 *http2 = context;
	struct http2_stream *stream = find_stream(session, frame->hd.stream_id);

	if (frame->hd.type != NGHTTP2_HEADERS)
		return 0;
	if (http2_side_of(http2, session) == HTTP2_INSIDE) {
		if (stream) {
			/* Trailers of a request: nobody needs them, and servers merge them. */
			stream->gathering = NULL;
			return 0;
		}
		if (http2->stream_count < 2 * HTTP2_STREAMS_MAX)
			stream = http2_stream_new(http2, frame->hd.stream_id);
		if (!stream)
			return NGHTTP2_ERR_CALLBACK_FAILURE;
		return nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, stream);
	}
	if (!stream)
		return 0;
	stream->gathering = stream->is_answered ? &stream->trailers : &stream->head;
	/* Interim ones count with the head that they come before: none of them waits for a window. */
	if (stream->is_answered)
		stream->gathered_bytes = 0;
	http1_head_reset(stream->gathering);
	stream->gathering->kind = HTTP1_RESPONSE;
	return 0;
}

static int replace_text(char **slot, const char *value)
{
	free(*slot);
	*slot = str_dup(value);
	return *slot ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_pseudo(struct http2_stream *stream, const char *name, const char *value)
{
	uint64_t status;

	if (str_equal(name, ":path"))
		return replace_text(&stream->path, value);
	if (str_equal(name, ":authority"))
		return replace_text(&stream->authority, value);
	if (str_equal(name, ":scheme"))
		stream->is_https = str_equal(value, "https");
	else if (str_equal(name, ":method") && str_copy(stream->head.method, sizeof stream->head.method, value) < 0)
		stream->problem = "the method is none";
	else if (str_equal(name, ":status") && num_parse_u64(value, &status) == 0)
		stream->head.status = (unsigned)status;
	return 0;
}

/* Both texts end with a NUL; nghttp2 has refused what no field may have in it. */
static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_size,
		     const uint8_t *value, size_t value_size, uint8_t flags, void *context)
{
	struct http2_stream *stream = find_stream(session, frame->hd.stream_id);
	int r;

	if (!stream || !stream->gathering)
		return 0;
	/* By as little as a byte for each, a sender repeats what the table has (RFC 7541): it counts each time. */
	stream->gathered_bytes += name_size + value_size + FIELD_OVERHEAD;
	if (stream->gathered_bytes > HTTP1_HEAD_MAX) {
		stream->problem = "its head is too large";
		return 0;
	}
	if (name[0] == ':')
		return on_pseudo(stream, (const char *)name, (const char *)value);
	r = http1_add(stream->gathering, (const char *)name, (const char *)value);
	if (r == -E2BIG || r == -EINVAL)
		stream->problem = r == -E2BIG ? "there are too many fields" : "a field is malformed";
	return r == -ENOMEM ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

/* False: a hook wants nothing of it to go on. */
static bool pass_on(struct http2_stream *stream, enum http2_side to, const uint8_t *bytes, size_t size,
		    enum http1_moment moment)
{
	const struct exchange_hooks *hooks = &stream->http2->hooks;
	struct exchange_content content = { to == HTTP2_OUTSIDE ? EXCHANGE_OUT : EXCHANGE_IN, bytes, size, moment,
					    pace_is_burst(&stream->to[to].pace) };
	struct buf *pending = &stream->to[to].pending;
	size_t before = pending->size;
	bool passes;

	if (!hooks->body) {
		buf_put(pending, bytes, size);
		return true;
	}
	pace_add(&stream->to[to].pace, size);
	stream->to[to].withheld += size;
	passes = hooks->body(hooks->context, &stream->record, &content, pending);
	stream->to[to].withheld -= pending->size - before;
	return passes;
}

/* The request goes no further; the client is told, unless an answer has begun. decision may be NULL. */
static int stop_request(struct http2_stream *stream, unsigned status, const char *reason,
			const struct decision *decision)
{
	http2_stream_drop(stream, HTTP2_OUTSIDE);
	http2_request_forget(stream);
	stream->is_stopped = true;
	stream->to[HTTP2_OUTSIDE].is_whole = false;
	if (stream->to[HTTP2_OUTSIDE].id)
		nghttp2_submit_rst_stream(stream->http2->sessions[HTTP2_OUTSIDE], NGHTTP2_FLAG_NONE,
					  stream->to[HTTP2_OUTSIDE].id, NGHTTP2_CANCEL);
	if (!stream->is_answered)
		return http2_stream_refuse(stream, status, reason, decision);
	nghttp2_submit_rst_stream(stream->http2->sessions[HTTP2_INSIDE], NGHTTP2_FLAG_NONE, stream->to[HTTP2_INSIDE].id,
				  NGHTTP2_CANCEL);
	return 0;
}

/* Of an answer whose head, or what comes behind it, is not to go on. */
static int refuse_answer(struct http2_stream *stream)
{
	return stop_request(stream, 502, stream->problem, NULL);
}

static int on_headers(struct http2_stream *stream, enum http2_side from)
{
	const struct exchange_hooks *hooks = &stream->http2->hooks;

	if (from == HTTP2_OUTSIDE && stream->problem && !stream->is_stopped)
		return refuse_answer(stream);
	if (stream->gathering == &stream->trailers) {
		stream->has_trailers = true;
		stream->trailers.reason = "";
		if (hooks->incoming)
			hooks->incoming(hooks->context, &stream->record, &stream->trailers);
		recorded_set_trailers(stream->recorded, &stream->trailers);
	}
	if (stream->gathering != &stream->head || stream->record.status)
		return 0;
	return from == HTTP2_INSIDE ? http2_request_begin(stream) : http2_answer_begin(stream);
}

/* What was passed on of it stays unfinished on the other side. */
static int stop(struct http2_stream *stream, enum http2_side from)
{
	const struct decision *decision = &stream->record.decision;

	if (from == HTTP2_INSIDE)
		return stop_request(stream, 403, decision->reason, decision);
	http2_stream_drop(stream, HTTP2_INSIDE);
	return NGHTTP2_ERR_CALLBACK_FAILURE;
}

/* Nobody is asked about it any more. */
static void give_up_asking(struct http2_stream *stream)
{
	const struct exchange_hooks *hooks = &stream->http2->hooks;

	if (hooks->forget)
		hooks->forget(hooks->context, &stream->record);
	stream->record.is_waiting = false;
	buf_reset(&stream->held);
}

/* The server takes nothing more: whatever the answers would be, they came too late. */
static int refuse_waiting(struct http2 *http2)
{
	int first = 0;

	for (struct http2_stream *stream = http2->streams; stream; stream = stream->next) {
		int r = 0;

		if (stream->record.is_waiting) {
			give_up_asking(stream);
			r = http2_stream_refuse(stream, 503, exchange_server_left, NULL);
		}
		first = first ? first : r;
	}
	return first;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct http2 *http2 = context;
	struct http2_stream *stream = find_stream(session, frame->hd.stream_id);
	enum http2_side from = http2_side_of(http2, session), to = http2_other(from);
	bool carries = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;

	/* Requests that are given up at once cost the server more than the client (CVE-2023-44487). */
	if (frame->hd.type == NGHTTP2_RST_STREAM && from == HTTP2_INSIDE &&
	    ++http2->resets > http2->finished + HTTP2_RESETS_MAX)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	if (frame->hd.type == NGHTTP2_GOAWAY && from == HTTP2_OUTSIDE)
		return nghttp2_submit_goaway(http2->sessions[HTTP2_INSIDE], NGHTTP2_FLAG_NONE,
					     nghttp2_session_get_last_proc_stream_id(http2->sessions[HTTP2_INSIDE]),
					     NGHTTP2_NO_ERROR, NULL, 0) == 0 && refuse_waiting(http2) == 0
			       ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
	if (!stream || !carries)
		return 0;
	/* Before the request is sent on, so that one without a body goes out as such. */
	if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM && !(from == HTTP2_INSIDE && stream->is_stopped)) {
		stream->to[to].is_whole = true;
		if (stream->to[to].id && !pass_on(stream, to, NULL, 0, HTTP1_ENDS) && stop(stream, from) != 0)
			return NGHTTP2_ERR_CALLBACK_FAILURE;
	}
	if (frame->hd.type == NGHTTP2_HEADERS && on_headers(stream, from) != 0)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	if (stream->is_kept && stream->to[HTTP2_OUTSIDE].is_whole && http2_request_give(stream) != 0)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	http2_stream_resume(stream, to);
	return 0;
}

/*
 * Of a request that a person is asked about: as much as its window lets come, which is not opened again. That of the
 * connection is, so that other requests go on.
 */
static int hold_body(struct http2_stream *stream, const uint8_t *bytes, size_t size)
{
	buf_put(&stream->held, bytes, size);
	return buf_error(&stream->held) == 0 &&
	       nghttp2_session_consume_connection(stream->http2->sessions[HTTP2_INSIDE], size) == 0 ?
		       0 : NGHTTP2_ERR_CALLBACK_FAILURE;
}

/* What was held goes the way that it would have gone as it came. */
static int release(struct http2_stream *stream, bool is_whole)
{
	struct buf *held = &stream->held;
	int r = 0;

	recorded_add_sent(stream->recorded, held->bytes, held->size);
	if (stream->is_kept || stream->to[HTTP2_OUTSIDE].id)
		stream->record.bytes_out += held->size;
	stream->to[HTTP2_OUTSIDE].is_whole = is_whole;
	if (stream->to[HTTP2_OUTSIDE].id) {
		stream->early = held->size;
		if (!pass_on(stream, HTTP2_OUTSIDE, held->bytes, held->size, HTTP1_GOES_ON) ||
		    (is_whole && !pass_on(stream, HTTP2_OUTSIDE, NULL, 0, HTTP1_ENDS)))
			r = stop(stream, HTTP2_INSIDE);
		http2_stream_resume(stream, HTTP2_OUTSIDE);
	}
	buf_reset(held);
	return r;
}

static int answer_request(struct http2_stream *stream, const struct decision *answer)
{
	bool is_whole = stream->to[HTTP2_OUTSIDE].is_whole;
	int r;

	/* It goes out with a body then. */
	if (stream->held.size)
		stream->to[HTTP2_OUTSIDE].is_whole = false;
	r = http2_request_answered(stream, answer);
	if (stream->record.is_waiting)
		stream->to[HTTP2_OUTSIDE].is_whole = is_whole;
	else if (r == 0 && stream->held.size)
		r = release(stream, is_whole);
	if (r == 0 && !stream->record.is_waiting && stream->is_kept && is_whole)
		r = http2_request_give(stream);
	return r;
}

void http2_answered(struct http2 *http2, struct exchange_record *record, const struct decision *answer)
{
	struct http2_stream *stream = http2->streams;

	while (stream && &stream->record != record)
		stream = stream->next;
	if (stream && record->is_waiting)
		http2->is_broken = answer_request(stream, answer) != 0 || http2->is_broken;
}

bool http2_is_waiting(const struct http2 *http2)
{
	for (const struct http2_stream *stream = http2->streams; stream; stream = stream->next)
		if (stream->record.is_waiting)
			return true;
	return false;
}

/* Of a client that is gone: nothing comes or goes on it any more. */
static void forget_stream(struct http2_stream *stream)
{
	nghttp2_session_set_stream_user_data(stream->http2->sessions[HTTP2_INSIDE], stream->to[HTTP2_INSIDE].id, NULL);
	stream->problem = "the client ended the connection while a person was asked";
	http2_stream_tell(stream);
	http2_stream_free(stream);
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes, size_t size,
		   void *context)
{
	struct http2 *http2 = context;
	struct http2_stream *stream = find_stream(session, id);
	enum http2_side from = http2_side_of(http2, session), to = http2_other(from);

	if (stream && from == HTTP2_INSIDE && stream->record.is_waiting)
		return hold_body(stream, bytes, size);
	if (stream && from == HTTP2_INSIDE)
		recorded_add_sent(stream->recorded, bytes, size);
	if (stream && from == HTTP2_INSIDE && stream->is_kept)
		stream->record.bytes_out += size;
	if (!stream || !stream->to[to].id || (from == HTTP2_INSIDE && !stream->to[HTTP2_OUTSIDE].id) ||
	    stream->is_stopped)
		return nghttp2_session_consume(session, id, size) == 0 ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
	if (from == HTTP2_OUTSIDE)
		recorded_add_received(stream->recorded, bytes, size);
	if (!pass_on(stream, to, bytes, size, HTTP1_GOES_ON))
		return stop(stream, from);
	*(from == HTTP2_INSIDE ? &stream->record.bytes_out : &stream->record.bytes_in) += size;
	http2_stream_resume(stream, to);
	return buf_error(&stream->to[to].pending) < 0 ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

/* The answer is out, the request is not whole, and the server does not read on: nobody needs the rest of it. */
static void cut_request(struct http2_stream *stream)
{
	if (stream->is_told && !stream->to[HTTP2_OUTSIDE].id && !stream->to[HTTP2_OUTSIDE].is_whole)
		nghttp2_submit_rst_stream(stream->http2->sessions[HTTP2_INSIDE], NGHTTP2_FLAG_NONE,
					  stream->to[HTTP2_INSIDE].id, NGHTTP2_NO_ERROR);
}

static int on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct http2_stream *stream = find_stream(session, frame->hd.stream_id);

	if (http2_side_of(context, session) == HTTP2_INSIDE && stream &&
	    (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
	    frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
		stream->is_told = true;
		cut_request(stream);
	}
	return 0;
}

static int close_inside(struct http2_stream *stream, uint32_t error)
{
	if (stream->to[HTTP2_OUTSIDE].id)
		nghttp2_submit_rst_stream(stream->http2->sessions[HTTP2_OUTSIDE], NGHTTP2_FLAG_NONE,
					  stream->to[HTTP2_OUTSIDE].id, error ? error : NGHTTP2_CANCEL);
	stream->http2->finished += error == NGHTTP2_NO_ERROR;
	http2_stream_tell(stream);
	http2_stream_drop(stream, HTTP2_INSIDE);
	return 0;
}

static int close_outside(struct http2_stream *stream, uint32_t error)
{
	http2_stream_drop(stream, HTTP2_OUTSIDE);
	if (!stream->to[HTTP2_INSIDE].id)
		return 0;
	if (!stream->is_answered && !stream->is_stopped)
		return http2_stream_refuse(stream, 502, "the server gave the request up", NULL);
	if (stream->is_stopped)
		return 0;
	cut_request(stream);
	if (!stream->to[HTTP2_INSIDE].is_whole)
		nghttp2_submit_rst_stream(stream->http2->sessions[HTTP2_INSIDE], NGHTTP2_FLAG_NONE,
					  stream->to[HTTP2_INSIDE].id, error ? error : NGHTTP2_INTERNAL_ERROR);
	return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *context)
{
	struct http2_stream *stream = find_stream(session, id);
	enum http2_side side = http2_side_of(context, session);
	int r;

	if (!stream)
		return 0;
	stream->to[side].id = 0;
	r = side == HTTP2_INSIDE ? close_inside(stream, error) : close_outside(stream, error);
	if (!stream->to[HTTP2_INSIDE].id && !stream->to[HTTP2_OUTSIDE].id)
		http2_stream_free(stream);
	return r == 0 ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
}

/* --- The connection. --- */

static int make_sessions(struct http2 *http2, nghttp2_session_callbacks *callbacks, nghttp2_option *options)
{
	static const nghttp2_settings_entry inside[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, HTTP2_STREAMS_MAX },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, HTTP2_STREAM_WINDOW },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HTTP1_HEAD_MAX },
	};
	static const nghttp2_settings_entry outside[] = {
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, HTTP2_STREAM_WINDOW },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HTTP1_HEAD_MAX },
	};
	int r;

	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_sent);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
	/* Bytes count as read when they have left for the other side. */
	nghttp2_option_set_no_auto_window_update(options, 1);
	nghttp2_option_set_no_closed_streams(options, 1);
	r = nghttp2_session_server_new2(&http2->sessions[HTTP2_INSIDE], callbacks, http2, options);
	if (r == 0)
		r = nghttp2_session_client_new2(&http2->sessions[HTTP2_OUTSIDE], callbacks, http2, options);
	if (r == 0)
		r = nghttp2_submit_settings(http2->sessions[HTTP2_INSIDE], NGHTTP2_FLAG_NONE, inside,
					    ARRAY_SIZE(inside));
	if (r == 0)
		r = nghttp2_submit_settings(http2->sessions[HTTP2_OUTSIDE], NGHTTP2_FLAG_NONE, outside,
					    ARRAY_SIZE(outside));
	for (int side = 0; r == 0 && side < HTTP2_SIDE_COUNT; side++)
		r = nghttp2_session_set_local_window_size(http2->sessions[side], NGHTTP2_FLAG_NONE, 0, HTTP2_WINDOW);
	return r;
}

int http2_new(struct http2 **ret_http2, const struct target_server *server, const struct policy *policy,
	      const struct exchange_hooks *hooks)
{
	struct http2 *http2 = calloc(1, sizeof *http2);
	nghttp2_session_callbacks *callbacks = NULL;
	nghttp2_option *options = NULL;
	int r = -ENOMEM;

	if (!http2)
		return r;
	http2->server = *server;
	http2->policy = policy;
	http2->hooks = *hooks;
	if (nghttp2_session_callbacks_new(&callbacks) == 0 && nghttp2_option_new(&options) == 0)
		r = make_sessions(http2, callbacks, options) == 0 ? 0 : -ENOMEM;
	nghttp2_session_callbacks_del(callbacks);
	nghttp2_option_del(options);
	if (r < 0)
		http2_free(http2);
	else
		*ret_http2 = http2;
	return r;
}

void http2_free(struct http2 *http2)
{
	if (!http2)
		return;
	for (int side = 0; side < HTTP2_SIDE_COUNT; side++)
		nghttp2_session_del(http2->sessions[side]);
	while (http2->streams) {
		if (http2->streams->to[HTTP2_INSIDE].id)
			http2_stream_tell(http2->streams);
		http2_stream_free(http2->streams);
	}
	free(http2);
}

void http2_set_unreachable(struct http2 *http2, const char *why)
{
	http2->unreachable = why;
}

static enum exchange_state state_of(struct http2 *http2, enum http2_side side)
{
	nghttp2_session *session = http2->sessions[side];

	bool wants = nghttp2_session_want_read(session) || nghttp2_session_want_write(session);

	if (http2->is_closing && !http2->streams && !nghttp2_session_want_write(session))
		wants = false;
	return http2->is_broken || !wants ? EXCHANGE_ENDED : EXCHANGE_OPEN;
}

enum exchange_state http2_give(struct http2 *http2, enum http2_side side, const uint8_t *bytes, size_t size)
{
	if (http2->is_broken)
		return EXCHANGE_ENDED;
	http2->is_broken = nghttp2_session_mem_recv(http2->sessions[side], bytes, size) != (ssize_t)size;
	return state_of(http2, side);
}

enum exchange_state http2_take(struct http2 *http2, enum http2_side side, struct buf *out, size_t max)
{
	/* Its streams may be gone, and bodies that it still wants to send went with them. */
	if (side == HTTP2_OUTSIDE && http2->has_lost_server)
		return state_of(http2, side);
	while (out->size < max) {
		const uint8_t *bytes;
		ssize_t size = nghttp2_session_mem_send(http2->sessions[side], &bytes);

		if (size <= 0) {
			http2->is_broken = http2->is_broken || size < 0;
			break;
		}
		buf_put(out, bytes, (size_t)size);
		http2->is_broken = http2->is_broken || buf_error(out) < 0;
	}
	return state_of(http2, side);
}

/* Whether more of the body to that side is to come, whose length was told, and its sender alone holds it up. */
static bool expects(const struct http2_stream *stream, enum http2_side to)
{
	bool is_open = to == HTTP2_INSIDE ? stream->is_answered && stream->to[HTTP2_INSIDE].id
					  : !stream->is_stopped && !stream->record.is_waiting &&
						    (stream->is_kept || stream->to[HTTP2_OUTSIDE].id);

	return is_open && stream->to[to].announces && !stream->to[to].is_whole && !stream->to[to].pending.size;
}

static int look_at(struct http2_stream *stream)
{
	const struct exchange_record *record = &stream->record;
	struct http2_way *to = stream->to;

	if (progress_is_too_slow(&to[HTTP2_OUTSIDE].progress, expects(stream, HTTP2_OUTSIDE), 0, record->bytes_out)) {
		stream->problem = exchange_slow_request;
		stream->is_kept = false;
		return stop_request(stream, 408, stream->problem, NULL);
	}
	if (progress_is_too_slow(&to[HTTP2_INSIDE].progress, expects(stream, HTTP2_INSIDE), 0, record->bytes_in)) {
		stream->problem = exchange_slow_answer;
		/* Closes the other side as well. */
		return nghttp2_submit_rst_stream(stream->http2->sessions[HTTP2_INSIDE], NGHTTP2_FLAG_NONE,
						 to[HTTP2_INSIDE].id, NGHTTP2_INTERNAL_ERROR);
	}
	return 0;
}

void http2_look(struct http2 *http2)
{
	struct http2_stream *next;

	for (struct http2_stream *stream = http2->streams; stream; stream = next) {
		next = stream->next;
		http2->is_broken = look_at(stream) != 0 || http2->is_broken;
	}
}

/* Whether it waits for our leave to send, or has just got it. */
static bool is_held_up(const struct http2_stream *stream)
{
	nghttp2_session *session = stream->http2->sessions[HTTP2_OUTSIDE];
	int32_t id = stream->to[HTTP2_OUTSIDE].id;

	return id && (nghttp2_session_get_stream_local_window_size(session, id) <= 0 ||
		      nghttp2_session_get_local_window_size(session) <= 0);
}

/* As http2_settle(), of one body. */
static uint64_t settle_body(struct http2_stream *stream, enum http2_side to, bool in_is_held_up, uint64_t now_ns)
{
	struct http2 *http2 = stream->http2;
	bool is_in = to == HTTP2_INSIDE;
	uint64_t wait_ns;

	if (!stream->to[to].id || (!stream->to[to].withheld && !stream->to[to].pace.came))
		return 0;
	/* A client that does not read may keep a server from sending long before a window is used up. */
	in_is_held_up = in_is_held_up || is_held_up(stream) || stream->to[to].pending.size;
	wait_ns = pace_look(&stream->to[to].pace, is_in, is_in && in_is_held_up, now_ns);
	if (!stream->to[to].withheld || wait_ns)
		return stream->to[to].withheld ? wait_ns : 0;
	if (!pass_on(stream, to, NULL, 0, HTTP1_PAUSES))
		http2->is_broken = stop(stream, http2_other(to)) != 0 || http2->is_broken;
	else
		http2_stream_resume(stream, to);
	return 1;
}

uint64_t http2_settle(struct http2 *http2, bool in_is_held_up, uint64_t now_ns)
{
	uint64_t first_ns = 0;

	for (struct http2_stream *stream = http2->streams; stream; stream = stream->next)
		for (int to = 0; to < HTTP2_SIDE_COUNT; to++) {
			uint64_t wait_ns = settle_body(stream, (enum http2_side)to, in_is_held_up, now_ns);

			if (wait_ns && (!first_ns || wait_ns < first_ns))
				first_ns = wait_ns;
		}
	return first_ns;
}

bool http2_is_idle(const struct http2 *http2)
{
	return !http2->streams;
}

void http2_ended(struct http2 *http2, enum http2_side side)
{
	nghttp2_session *rest = http2->sessions[http2_other(side)];
	struct http2_stream *next;
	int r;

	http2->is_closing = true;
	http2->has_lost_server = http2->has_lost_server || side == HTTP2_OUTSIDE;
	for (struct http2_stream *stream = http2->streams; stream; stream = next) {
		next = stream->next;
		if (side == HTTP2_OUTSIDE && stream->to[HTTP2_OUTSIDE].id && stream->to[HTTP2_INSIDE].id) {
			stream->to[HTTP2_OUTSIDE].id = 0;
			http2->is_broken = close_outside(stream, NGHTTP2_NO_ERROR) != 0 || http2->is_broken;
		}
		if (side == HTTP2_INSIDE && stream->record.is_waiting) {
			give_up_asking(stream);
			forget_stream(stream);
		}
	}
	if (side == HTTP2_OUTSIDE)
		http2->is_broken = refuse_waiting(http2) != 0 || http2->is_broken;
	/* The client still gets the answers that are here. */
	r = side == HTTP2_INSIDE ? nghttp2_session_terminate_session(rest, NGHTTP2_NO_ERROR)
				 : nghttp2_submit_goaway(rest, NGHTTP2_FLAG_NONE,
							 nghttp2_session_get_last_proc_stream_id(rest),
							 NGHTTP2_NO_ERROR, NULL, 0);
	http2->is_broken = http2->is_broken || r != 0;
}
