/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/http2.h"

#include <nghttp2/nghttp2.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "egress/http1-head.h"
#include "egress/inject.h"
#include "os/clock.h"

/*
 * A stream has a number on each side, and for each side the bytes that wait to go there. They are taken off
 * the window of the side that they came from only when they have left for the other
 * (nghttp2_session_consume).
 */

struct stream {
	struct http2 *http2;
	struct stream *next, **link;
	int32_t ids[HTTP2_SIDE_COUNT];          /* 0: none, or closed */
	struct buf pending[HTTP2_SIDE_COUNT];   /* to go to that side */
	bool is_whole[HTTP2_SIDE_COUNT];        /* nothing follows to that side */
	struct http1_head head;                 /* of the request, then of the answer */
	struct http1_head trailers;             /* of the answer */
	struct http1_head *gathering;           /* which of them comes in; NULL: dropped */
	char *authority, *path;                 /* owned */
	size_t withheld[HTTP2_SIDE_COUNT];      /* bytes of bodies that a hook keeps back on their way to that side */
	bool is_stopped;                        /* nothing more of the request goes out */
	bool is_https, is_answered, has_trailers, is_told;   /* told: the end of the answer was sent */
	const char *problem;                    /* static */
	char method[HTTP1_METHOD_SIZE];
	struct target target;
	struct exchange_record record;
	struct take *take;                      /* NULL: not on a tape */
	struct answer rule_answer;
	struct answer_source given;             /* what stands in for the server's answer */
	bool is_kept;                           /* the request does not go out */
};

struct http2 {
	nghttp2_session *sessions[HTTP2_SIDE_COUNT];
	struct target_server server;
	const struct policy *policy;
	struct exchange_hooks hooks;
	struct stream *streams;
	size_t stream_count, finished, resets;
	bool is_broken, is_closing, has_lost_server;
	const char *unreachable;
};

/* Room for all fields of a head and the pseudo-fields. */
struct nvs {
	nghttp2_nv list[HTTP1_FIELDS_MAX + 5];
	size_t count;
};

static enum http2_side side_of(const struct http2 *http2, const nghttp2_session *session)
{
	return session == http2->sessions[HTTP2_INSIDE] ? HTTP2_INSIDE : HTTP2_OUTSIDE;
}

static enum http2_side other(enum http2_side side)
{
	return side == HTTP2_INSIDE ? HTTP2_OUTSIDE : HTTP2_INSIDE;
}

static void add_nv(struct nvs *nvs, const char *name, const char *value, uint8_t flags)
{
	nvs->list[nvs->count++] = (nghttp2_nv){ (uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), flags };
}

/* Fields as they are sent on; secrets are kept out of the other side's tables (RFC 7541 7.1). */
static void add_fields(struct nvs *nvs, const struct http1_head *head)
{
	for (size_t i = 0; i < head->field_count; i++) {
		const struct http1_field *field = &head->fields[i];

		if (http1_name_is(field->name, "host") || http1_name_is(field->name, "te"))
			continue;
		/* Lower case is a rule here (RFC 9113 8.2), and so is a name that a hook put there: it is no copy. */
		for (char *at = (char *)(uintptr_t)field->name; *at; at++)
			if (*at >= 'A' && *at <= 'Z')
				*at |= 0x20;
		add_nv(nvs, field->name, field->value,
		       field->is_secret ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE);
	}
}

/* --- The life of a stream. --- */

static struct stream *stream_new(struct http2 *http2, int32_t id)
{
	struct stream *stream = calloc(1, sizeof *stream);

	if (!stream)
		return NULL;
	stream->http2 = http2;
	stream->ids[HTTP2_INSIDE] = id;
	stream->head.kind = HTTP1_REQUEST;
	stream->gathering = &stream->head;
	for (int side = 0; side < HTTP2_SIDE_COUNT; side++)
		buf_init(&stream->pending[side], HTTP2_STREAM_WINDOW + EXCHANGE_REFUSAL_MAX);
	stream->next = http2->streams;
	stream->link = &http2->streams;
	if (stream->next)
		stream->next->link = &stream->next;
	http2->streams = stream;
	http2->stream_count++;
	return stream;
}

static void stream_free(struct stream *stream)
{
	*stream->link = stream->next;
	if (stream->next)
		stream->next->link = stream->link;
	stream->http2->stream_count--;
	for (int side = 0; side < HTTP2_SIDE_COUNT; side++)
		buf_done(&stream->pending[side]);
	http1_head_reset(&stream->head);
	http1_head_reset(&stream->trailers);
	target_done(&stream->target);
	free(stream->authority);
	free(stream->path);
	free(stream);
}

static void tell_over(struct stream *stream)
{
	stream->record.method = stream->method;
	stream->record.path = stream->record.path ? stream->record.path : "";
	stream->record.problem = stream->problem;
	if (stream->given.answer)
		stream->record.bytes_in = stream->given.done;
	if (stream->http2->hooks.over)
		stream->http2->hooks.over(stream->http2->hooks.context, &stream->record);
	take_end(stream->take, stream->is_answered && stream->is_whole[HTTP2_INSIDE]);
	stream->take = NULL;
}

/* What will not be sent any more gives its part of the connection's window back. */
static void drop_pending(struct stream *stream, enum http2_side to)
{
	size_t size = stream->pending[to].size + stream->withheld[to];

	stream->withheld[to] = 0;
	/* Of an answer of our own nothing was ever counted. */
	if (size && (to == HTTP2_OUTSIDE || stream->is_answered))
		nghttp2_session_consume_connection(stream->http2->sessions[other(to)], size);
	buf_reset(&stream->pending[to]);
}

/* What stands in for the server's answer. */
static ssize_t read_given(nghttp2_session *session, struct stream *stream, uint8_t *bytes, size_t max, uint32_t *flags)
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
		if (answer_submit_trailers(&stream->given, session, stream->ids[HTTP2_INSIDE]) != 0)
			return NGHTTP2_ERR_CALLBACK_FAILURE;
	}
	return (ssize_t)size;
}

static ssize_t read_pending(nghttp2_session *session, int32_t id, uint8_t *bytes, size_t max, uint32_t *flags,
			    nghttp2_data_source *source, void *context)
{
	struct stream *stream = source->ptr;
	enum http2_side to = side_of(context, session), from = other(to);
	struct buf *pending = &stream->pending[to];
	size_t size = pending->size < max ? pending->size : max;
	struct nvs nvs = { .count = 0 };

	if (to == HTTP2_INSIDE && stream->given.answer)
		return read_given(session, stream, bytes, max, flags);
	if (!size && !stream->is_whole[to])
		return NGHTTP2_ERR_DEFERRED;
	if (size) {
		memcpy(bytes, pending->bytes, size);
		buf_consume(pending, size);
		if (stream->ids[from])
			nghttp2_session_consume(stream->http2->sessions[from], stream->ids[from], size);
		else if (from == HTTP2_INSIDE || stream->is_answered)
			nghttp2_session_consume_connection(stream->http2->sessions[from], size);
	}
	if (pending->size || !stream->is_whole[to])
		return (ssize_t)size;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (to == HTTP2_INSIDE && stream->has_trailers) {
		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		add_fields(&nvs, &stream->trailers);
		if (nghttp2_submit_trailer(session, id, nvs.list, nvs.count) != 0)
			return NGHTTP2_ERR_CALLBACK_FAILURE;
	}
	return (ssize_t)size;
}

static void resume(struct stream *stream, enum http2_side to)
{
	/* Fails where nothing was deferred, which is as well. */
	if (stream->ids[to])
		nghttp2_session_resume_data(stream->http2->sessions[to], stream->ids[to]);
}

static int submit_answer(struct stream *stream, struct nvs *nvs)
{
	nghttp2_data_provider provider = { .source.ptr = stream, .read_callback = read_pending };
	bool has_body = !stream->is_whole[HTTP2_INSIDE] || stream->pending[HTTP2_INSIDE].size;

	return nghttp2_submit_response(stream->http2->sessions[HTTP2_INSIDE], stream->ids[HTTP2_INSIDE], nvs->list,
				       nvs->count, has_body ? &provider : NULL);
}

/* An answer of atoll's own; what still comes of the request is dropped. */
static int refuse(struct stream *stream, unsigned status, const char *reason, const struct decision *decision)
{
	struct buf *body = &stream->pending[HTTP2_INSIDE];
	char number[16], size[16], wait[16];
	struct nvs nvs = { .count = 0 };
	uint32_t wait_s = status == 429 ? stream->record.wait_s : 0;

	stream->record.status = status;
	buf_reset(body);
	exchange_put_reason(reason, wait_s ? "network.limits" : decision ? decision->rule.id : NULL,
			    wait_s ? exchange_wait_hint : decision ? decision->hint : NULL, body);
	stream->is_whole[HTTP2_INSIDE] = true;
	if (buf_error(body) < 0 || str_format(number, sizeof number, "%u", status) < 0 ||
	    str_format(size, sizeof size, "%zu", body->size) < 0 || str_format(wait, sizeof wait, "%u", wait_s) < 0)
		return NGHTTP2_ERR_NOMEM;
	add_nv(&nvs, ":status", number, NGHTTP2_NV_FLAG_NONE);
	add_nv(&nvs, "content-type", "application/json", NGHTTP2_NV_FLAG_NONE);
	add_nv(&nvs, "content-length", size, NGHTTP2_NV_FLAG_NONE);
	add_nv(&nvs, "cache-control", "no-store", NGHTTP2_NV_FLAG_NONE);
	if (wait_s)
		add_nv(&nvs, "retry-after", wait, NGHTTP2_NV_FLAG_NONE);
	return submit_answer(stream, &nvs);
}

/* --- Requests. --- */

static const char *check_request(const struct stream *stream)
{
	const struct target_server *server = &stream->http2->server;
	const char *host = http1_find(&stream->head, "host");

	if (stream->problem)
		return stream->problem;
	if (!stream->head.method[0] || !stream->path || str_equal(stream->head.method, "CONNECT") ||
	    str_equal(stream->head.method, "TRACE"))
		return "this method makes no sense here";
	if (!stream->is_https || !stream->authority || !target_host_is(stream->authority, server) ||
	    (host && !target_host_is(host, server)))
		return "the host that it names is not the one that it is sent to";
	for (const char *at = stream->head.method; *at; at++)
		if ((*at < 'A' || *at > 'Z') && *at != '-')
			return "the method is none";
	for (size_t i = 0; i < stream->head.field_count; i++)
		if (http1_name_is_masked(stream->head.fields[i].name))
			return "a field has the name of another one in disguise";
	return NULL;
}

static int send_request(struct stream *stream)
{
	nghttp2_data_provider provider = { .source.ptr = stream, .read_callback = read_pending };
	struct nvs nvs = { .count = 0 };
	int32_t id;

	add_nv(&nvs, ":method", stream->method, NGHTTP2_NV_FLAG_NONE);
	add_nv(&nvs, ":scheme", "https", NGHTTP2_NV_FLAG_NONE);
	add_nv(&nvs, ":authority", stream->authority, NGHTTP2_NV_FLAG_NONE);
	add_nv(&nvs, ":path", stream->head.target, NGHTTP2_NV_FLAG_NO_INDEX);
	add_fields(&nvs, &stream->head);
	id = nghttp2_submit_request(stream->http2->sessions[HTTP2_OUTSIDE], NULL, nvs.list, nvs.count,
				    stream->is_whole[HTTP2_OUTSIDE] ? NULL : &provider, stream);
	if (id < 0)
		return refuse(stream, 502, "the server takes no more requests on this connection", NULL);
	stream->ids[HTTP2_OUTSIDE] = id;
	return 0;
}

/* What is not sent is nothing to record: it may have been refused for what it would have carried out. */
static void drop_take(struct stream *stream)
{
	take_drop(stream->take);
	stream->take = NULL;
}

/* By a rule of the gate's own, or because it cannot be done. */
static int refuse_outgoing(struct stream *stream, const char *problem)
{
	const struct decision *decision = &stream->record.decision;

	if (decision->verdict != VERDICT_ALLOW)
		return refuse(stream, 403, decision->reason, decision);
	stream->problem = problem;
	return refuse(stream, stream->record.wait_s ? 429 : 502, problem, NULL);
}

/* On, with the target that was judged. */
static int forward(struct stream *stream)
{
	const struct http2 *http2 = stream->http2;
	const struct exchange_hooks *hooks = &http2->hooks;
	struct http1_head *head = &stream->head;
	const char *problem = http2->unreachable;
	char *owned = NULL;
	int r;

	head->target = stream->target.origin;
	if (!problem && hooks->tape)
		stream->take = take_begin(hooks->tape, &http2->server, head, true, &problem);
	if (problem) {
		stream->problem = problem;
		r = refuse(stream, 502, problem, NULL);
	} else if (hooks->outgoing &&
		   !hooks->outgoing(hooks->context, &stream->record, head, &stream->target, &owned, &problem)) {
		drop_take(stream);
		r = refuse_outgoing(stream, problem);
	} else {
		r = send_request(stream);
	}
	head->target = NULL;
	inject_free(owned);
	return r;
}

/* It goes nowhere: its answer is a rule's, or stands in a recording. */
static int keep_request(struct stream *stream)
{
	const struct http2 *http2 = stream->http2;
	const struct net_answer *rule = stream->record.decision.answer;
	nghttp2_nv go_on = { (uint8_t *)":status", (uint8_t *)"100", 7, 3, NGHTTP2_NV_FLAG_NONE };

	stream->is_kept = true;
	stream->given.is_to_head = str_equal(stream->method, "HEAD");
	stream->head.target = stream->target.origin;
	if (rule) {
		stream->rule_answer = answer_of_rule(rule);
		stream->given.answer = &stream->rule_answer;
	} else {
		stream->take = take_begin(http2->hooks.tape, &http2->server, &stream->head, true, &stream->problem);
	}
	stream->head.target = NULL;
	if (!rule && !stream->take)
		return refuse(stream, 502, stream->problem, NULL);
	stream->problem = NULL;
	if (!http1_find(&stream->head, "expect") || stream->is_whole[HTTP2_OUTSIDE])
		return 0;
	return nghttp2_submit_headers(http2->sessions[HTTP2_INSIDE], NGHTTP2_FLAG_NONE, stream->ids[HTTP2_INSIDE], NULL,
				      &go_on, 1, NULL);
}

/* The request is whole: its answer. */
static int give(struct stream *stream)
{
	nghttp2_data_provider provider = { .source.ptr = stream, .read_callback = read_pending };
	struct exchange_record *record = &stream->record;
	const char *problem = NULL;

	stream->is_kept = false;
	if (stream->take)
		stream->given.answer = take_answer(stream->take, &problem);
	if (!stream->given.answer) {
		record->is_not_recorded = true;
		record->decision = exchange_not_recorded(problem);
		return refuse(stream, 403, problem, &record->decision);
	}
	record->is_replayed = stream->take != NULL;
	record->status = stream->given.answer->status;
	return answer_submit(&stream->given, stream->http2->sessions[HTTP2_INSIDE], stream->ids[HTTP2_INSIDE],
			     &provider);
}

static int begin_request(struct stream *stream)
{
	const struct http2 *http2 = stream->http2;
	struct exchange_record *record = &stream->record;
	struct http1_head *head = &stream->head;
	const char *problem = NULL;

	memcpy(stream->method, head->method, sizeof stream->method);
	record->started_ns = clock_monotonic_ns();
	stream->problem = check_request(stream);
	if (!stream->problem && target_parse(head->method, stream->path, &http2->server, &stream->target, &problem) < 0)
		stream->problem = problem ? problem : "there is no memory";
	if (stream->problem)
		return refuse(stream, 400, stream->problem, NULL);
	record->method = stream->method;
	record->decision = target_judge(&stream->target, http2->policy, head->method, &http2->server, &record->path);
	if (exchange_is_kept(&record->decision, http2->hooks.tape))
		return keep_request(stream);
	if (record->decision.verdict != VERDICT_ALLOW)
		return refuse(stream, 403, record->decision.reason, &record->decision);
	return forward(stream);
}

/* --- Answers. --- */

static int begin_answer(struct stream *stream)
{
	struct http2 *http2 = stream->http2;
	char status[16];
	struct nvs nvs = { .count = 0 };

	if (str_format(status, sizeof status, "%u", stream->head.status) < 0)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	if (stream->head.status >= 200) {
		stream->is_answered = true;
		stream->record.status = stream->head.status;
	}
	stream->head.reason = "";
	if (http2->hooks.incoming)
		http2->hooks.incoming(http2->hooks.context, &stream->record, &stream->head);
	if (stream->is_answered)
		take_answered(stream->take, &stream->head);
	add_nv(&nvs, ":status", status, NGHTTP2_NV_FLAG_NONE);
	add_fields(&nvs, &stream->head);
	if (stream->is_answered)
		return submit_answer(stream, &nvs);
	return nghttp2_submit_headers(http2->sessions[HTTP2_INSIDE], NGHTTP2_FLAG_NONE, stream->ids[HTTP2_INSIDE], NULL,
				      nvs.list, nvs.count, NULL);
}

/* --- What nghttp2 tells. --- */

static struct stream *find_stream(nghttp2_session *session, int32_t id)
{
	return id ? nghttp2_session_get_stream_user_data(session, id) : NULL;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct http2 *http2 = context;
	struct stream *stream = find_stream(session, frame->hd.stream_id);

	if (frame->hd.type != NGHTTP2_HEADERS)
		return 0;
	if (side_of(http2, session) == HTTP2_INSIDE) {
		if (stream) {
			stream->gathering =
				NULL; /* trailers of a request: nobody needs them, and servers merge them */
			return 0;
		}
		stream = http2->stream_count < 2 * HTTP2_STREAMS_MAX ? stream_new(http2, frame->hd.stream_id) : NULL;
		if (!stream)
			return NGHTTP2_ERR_CALLBACK_FAILURE;
		return nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, stream);
	}
	if (!stream)
		return 0;
	stream->gathering = stream->is_answered ? &stream->trailers : &stream->head;
	http1_head_reset(stream->gathering);
	stream->gathering->kind = HTTP1_RESPONSE;
	return 0;
}

static int keep(char **slot, const char *value)
{
	free(*slot);
	*slot = str_dup(value);
	return *slot ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_pseudo(struct stream *stream, const char *name, const char *value)
{
	uint64_t status;

	if (str_equal(name, ":path"))
		return keep(&stream->path, value);
	if (str_equal(name, ":authority"))
		return keep(&stream->authority, value);
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
	struct stream *stream = find_stream(session, frame->hd.stream_id);
	int r;

	if (!stream || !stream->gathering)
		return 0;
	if (name[0] == ':')
		return on_pseudo(stream, (const char *)name, (const char *)value);
	r = http1_add(stream->gathering, (const char *)name, (const char *)value);
	if (r == -E2BIG || r == -EINVAL)
		stream->problem = r == -E2BIG ? "there are too many fields" : "a field is malformed";
	return r == -ENOMEM ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_headers(struct stream *stream, enum http2_side from)
{
	const struct exchange_hooks *hooks = &stream->http2->hooks;

	if (stream->gathering == &stream->trailers) {
		stream->has_trailers = true;
		stream->trailers.reason = "";
		if (hooks->incoming)
			hooks->incoming(hooks->context, &stream->record, &stream->trailers);
		take_trailers(stream->take, &stream->trailers);
	}
	if (stream->gathering != &stream->head || stream->record.status)
		return 0;
	return from == HTTP2_INSIDE ? begin_request(stream) : begin_answer(stream);
}

/* False: a hook wants nothing of it to go on. */
static bool pass_on(struct stream *stream, enum http2_side to, const uint8_t *bytes, size_t size, bool is_end)
{
	const struct exchange_hooks *hooks = &stream->http2->hooks;
	struct exchange_content content = { to == HTTP2_OUTSIDE ? EXCHANGE_OUT : EXCHANGE_IN, bytes, size, is_end };
	struct buf *pending = &stream->pending[to];
	size_t before = pending->size;

	if (!hooks->body) {
		buf_put(pending, bytes, size);
		return true;
	}
	stream->withheld[to] += size;
	if (!hooks->body(hooks->context, &stream->record, &content, pending))
		return false;
	stream->withheld[to] -= pending->size - before;
	return true;
}

/* What was passed on of it stays unfinished on the other side. */
static int stop(struct stream *stream, enum http2_side from)
{
	const struct decision *decision = &stream->record.decision;

	drop_pending(stream, other(from));
	if (from == HTTP2_OUTSIDE)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	drop_take(stream);
	stream->is_stopped = true;
	stream->is_whole[HTTP2_OUTSIDE] = false;
	if (stream->ids[HTTP2_OUTSIDE])
		nghttp2_submit_rst_stream(stream->http2->sessions[HTTP2_OUTSIDE], NGHTTP2_FLAG_NONE,
					  stream->ids[HTTP2_OUTSIDE], NGHTTP2_CANCEL);
	if (!stream->is_answered)
		return refuse(stream, 403, decision->reason, decision);
	nghttp2_submit_rst_stream(stream->http2->sessions[HTTP2_INSIDE], NGHTTP2_FLAG_NONE, stream->ids[HTTP2_INSIDE],
				  NGHTTP2_CANCEL);
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct http2 *http2 = context;
	struct stream *stream = find_stream(session, frame->hd.stream_id);
	enum http2_side from = side_of(http2, session);
	bool carries = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;

	/* Requests that are given up at once cost the server more than the client (CVE-2023-44487). */
	if (frame->hd.type == NGHTTP2_RST_STREAM && from == HTTP2_INSIDE &&
	    ++http2->resets > http2->finished + HTTP2_RESETS_MAX)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	if (frame->hd.type == NGHTTP2_GOAWAY && from == HTTP2_OUTSIDE)
		return nghttp2_submit_goaway(http2->sessions[HTTP2_INSIDE], NGHTTP2_FLAG_NONE,
					     nghttp2_session_get_last_proc_stream_id(http2->sessions[HTTP2_INSIDE]),
					     NGHTTP2_NO_ERROR, NULL, 0) == 0 ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
	if (!stream || !carries)
		return 0;
	/* Before the request is sent on, so that one without a body goes out as such. */
	if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM && !(from == HTTP2_INSIDE && stream->is_stopped)) {
		stream->is_whole[other(from)] = true;
		if (stream->ids[other(from)] && !pass_on(stream, other(from), NULL, 0, true) && stop(stream, from) != 0)
			return NGHTTP2_ERR_CALLBACK_FAILURE;
	}
	if (frame->hd.type == NGHTTP2_HEADERS && on_headers(stream, from) != 0)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	if (stream->is_kept && stream->is_whole[HTTP2_OUTSIDE] && give(stream) != 0)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	resume(stream, other(from));
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes, size_t size,
		   void *context)
{
	struct http2 *http2 = context;
	struct stream *stream = find_stream(session, id);
	enum http2_side from = side_of(http2, session), to = other(from);

	if (stream && from == HTTP2_INSIDE)
		take_sent(stream->take, bytes, size);
	if (stream && from == HTTP2_INSIDE && stream->is_kept)
		stream->record.bytes_out += size;
	if (!stream || !stream->ids[to] || (from == HTTP2_INSIDE && !stream->ids[HTTP2_OUTSIDE]) ||
	    (from == HTTP2_INSIDE && stream->is_stopped))
		return nghttp2_session_consume(session, id, size) == 0 ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
	if (from == HTTP2_OUTSIDE)
		take_received(stream->take, bytes, size);
	if (!pass_on(stream, to, bytes, size, false))
		return stop(stream, from);
	*(from == HTTP2_INSIDE ? &stream->record.bytes_out : &stream->record.bytes_in) += size;
	resume(stream, to);
	return buf_error(&stream->pending[to]) < 0 ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

/* The answer is out, the request is not whole, and the server does not read on: nobody needs the rest of it. */
static void cut_request(struct stream *stream)
{
	if (stream->is_told && !stream->ids[HTTP2_OUTSIDE] && !stream->is_whole[HTTP2_OUTSIDE])
		nghttp2_submit_rst_stream(stream->http2->sessions[HTTP2_INSIDE], NGHTTP2_FLAG_NONE,
					  stream->ids[HTTP2_INSIDE], NGHTTP2_NO_ERROR);
}

static int on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct stream *stream = find_stream(session, frame->hd.stream_id);

	if (side_of(context, session) == HTTP2_INSIDE && stream &&
	    (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
	    frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
		stream->is_told = true;
		cut_request(stream);
	}
	return 0;
}

static int close_inside(struct stream *stream, uint32_t error)
{
	if (stream->ids[HTTP2_OUTSIDE])
		nghttp2_submit_rst_stream(stream->http2->sessions[HTTP2_OUTSIDE], NGHTTP2_FLAG_NONE,
					  stream->ids[HTTP2_OUTSIDE], error ? error : NGHTTP2_CANCEL);
	stream->http2->finished += error == NGHTTP2_NO_ERROR;
	tell_over(stream);
	drop_pending(stream, HTTP2_INSIDE);
	return 0;
}

static int close_outside(struct stream *stream, uint32_t error)
{
	drop_pending(stream, HTTP2_OUTSIDE);
	if (!stream->ids[HTTP2_INSIDE])
		return 0;
	if (!stream->is_answered && !stream->is_stopped)
		return refuse(stream, 502, "the server gave the request up", NULL);
	if (stream->is_stopped)
		return 0;
	cut_request(stream);
	if (!stream->is_whole[HTTP2_INSIDE])
		nghttp2_submit_rst_stream(stream->http2->sessions[HTTP2_INSIDE], NGHTTP2_FLAG_NONE,
					  stream->ids[HTTP2_INSIDE], error ? error : NGHTTP2_INTERNAL_ERROR);
	return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *context)
{
	struct stream *stream = find_stream(session, id);
	enum http2_side side = side_of(context, session);
	int r;

	if (!stream)
		return 0;
	stream->ids[side] = 0;
	r = side == HTTP2_INSIDE ? close_inside(stream, error) : close_outside(stream, error);
	if (!stream->ids[HTTP2_INSIDE] && !stream->ids[HTTP2_OUTSIDE])
		stream_free(stream);
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
		if (http2->streams->ids[HTTP2_INSIDE])
			tell_over(http2->streams);
		stream_free(http2->streams);
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

bool http2_is_idle(const struct http2 *http2)
{
	return !http2->streams;
}

void http2_ended(struct http2 *http2, enum http2_side side)
{
	nghttp2_session *rest = http2->sessions[other(side)];
	struct stream *next;
	int r;

	http2->is_closing = true;
	http2->has_lost_server = http2->has_lost_server || side == HTTP2_OUTSIDE;
	for (struct stream *stream = http2->streams; stream; stream = next) {
		next = stream->next;
		if (side == HTTP2_OUTSIDE && stream->ids[HTTP2_OUTSIDE] && stream->ids[HTTP2_INSIDE]) {
			stream->ids[HTTP2_OUTSIDE] = 0;
			http2->is_broken = close_outside(stream, NGHTTP2_NO_ERROR) != 0 || http2->is_broken;
		}
	}
	/* The client still gets the answers that are here. */
	r = side == HTTP2_INSIDE ? nghttp2_session_terminate_session(rest, NGHTTP2_NO_ERROR)
				 : nghttp2_submit_goaway(rest, NGHTTP2_FLAG_NONE,
							 nghttp2_session_get_last_proc_stream_id(rest),
							 NGHTTP2_NO_ERROR, NULL, 0);
	http2->is_broken = http2->is_broken || r != 0;
}
