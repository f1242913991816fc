/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/http/http2-request.h"

#include <string.h>

#include "base/str.h"
#include "egress/credentials/inject.h"
#include "egress/message/http1-head.h"
#include "os/clock.h"

static const char *check_request(const struct http2_stream *stream)
{
	const struct target_server *server = &stream->http2->server;
	const char *host = http1_find(&stream->head, "host");

	if (stream->problem)
		return stream->problem;
	if (!stream->head.method[0] || !stream->path || str_equal(stream->head.method, "CONNECT") ||
	    str_equal(stream->head.method, "TRACE"))
		return "this method makes no sense here";
	if (stream->is_https != server->is_tls || !stream->authority || !target_host_is(stream->authority, server) ||
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

static int send_request(struct http2_stream *stream)
{
	nghttp2_data_provider provider = { .source.ptr = stream, .read_callback = http2_stream_read };
	struct http2_nvs nvs = { .count = 0 };
	int32_t id;

	http2_nvs_add(&nvs, ":method", stream->method, NGHTTP2_NV_FLAG_NONE);
	http2_nvs_add(&nvs, ":scheme", stream->is_https ? "https" : "http", NGHTTP2_NV_FLAG_NONE);
	http2_nvs_add(&nvs, ":authority", stream->authority, NGHTTP2_NV_FLAG_NONE);
	http2_nvs_add(&nvs, ":path", stream->head.target, NGHTTP2_NV_FLAG_NO_INDEX);
	http2_nvs_add_fields(&nvs, &stream->head);
	id = nghttp2_submit_request(stream->http2->sessions[HTTP2_OUTSIDE], NULL, nvs.list, nvs.count,
				    stream->to[HTTP2_OUTSIDE].is_whole ? NULL : &provider, stream);
	if (id < 0)
		return http2_stream_refuse(stream, 502, "the server takes no more requests on this connection", NULL);
	stream->to[HTTP2_OUTSIDE].id = id;
	stream->gathered_bytes = 0;
	return 0;
}

void http2_request_forget(struct http2_stream *stream)
{
	recorded_drop(stream->recorded);
	stream->recorded = NULL;
}

/* By a rule of the gate's own, or because it cannot be done. */
static int refuse_outgoing(struct http2_stream *stream, const char *problem)
{
	const struct decision *decision = &stream->record.decision;

	if (decision->verdict != VERDICT_ALLOW)
		return http2_stream_refuse(stream, 403, decision->reason, decision);
	stream->problem = problem;
	return http2_stream_refuse(stream, stream->record.wait_s ? 429 : 502, problem, NULL);
}

/* On, with the target that was judged. */
static int forward(struct http2_stream *stream)
{
	const struct http2 *http2 = stream->http2;
	const struct exchange_hooks *hooks = &http2->hooks;
	struct http1_head *head = &stream->head;
	const char *problem = http2->unreachable;
	char *owned = NULL;
	int r;

	head->target = stream->target.origin;
	if (!problem && hooks->recording)
		stream->recorded = recorded_begin(hooks->recording, &http2->server, head, true, &problem);
	if (problem) {
		stream->problem = problem;
		r = http2_stream_refuse(stream, 502, problem, NULL);
	} else if (hooks->outgoing &&
		   !hooks->outgoing(hooks->context, &stream->record, head, &stream->target, &owned, &problem)) {
		http2_request_forget(stream);
		r = refuse_outgoing(stream, problem);
	} else {
		r = send_request(stream);
	}
	head->target = NULL;
	inject_free(owned);
	return r;
}

/* It goes nowhere: its answer is a rule's, or stands in a recording. */
static int keep_request(struct http2_stream *stream)
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
		stream->recorded = recorded_begin(http2->hooks.recording, &http2->server, &stream->head, true,
						  &stream->problem);
	}
	stream->head.target = NULL;
	if (!rule && !stream->recorded)
		return http2_stream_refuse(stream, 502, stream->problem, NULL);
	stream->problem = NULL;
	if (!http1_find(&stream->head, "expect") || stream->to[HTTP2_OUTSIDE].is_whole)
		return 0;
	return nghttp2_submit_headers(http2->sessions[HTTP2_INSIDE], NGHTTP2_FLAG_NONE, stream->to[HTTP2_INSIDE].id,
				      NULL, &go_on, 1, NULL);
}

int http2_request_give(struct http2_stream *stream)
{
	nghttp2_data_provider provider = { .source.ptr = stream, .read_callback = http2_stream_read };
	struct exchange_record *record = &stream->record;
	const char *problem = NULL;

	stream->is_kept = false;
	if (stream->recorded)
		stream->given.answer = recorded_find_answer(stream->recorded, &problem);
	if (!stream->given.answer) {
		record->is_not_recorded = true;
		record->decision = exchange_not_recorded(problem);
		return http2_stream_refuse(stream, 403, problem, &record->decision);
	}
	record->is_replayed = stream->recorded != NULL;
	record->status = stream->given.answer->status;
	return answer_submit(&stream->given, stream->http2->sessions[HTTP2_INSIDE], stream->to[HTTP2_INSIDE].id,
			     &provider);
}

/* By what was decided about it. */
static int proceed(struct http2_stream *stream)
{
	const struct decision *decision = &stream->record.decision;

	if (stream->record.is_waiting)
		return 0;
	if (exchange_is_kept(decision, stream->http2->hooks.recording))
		return keep_request(stream);
	if (decision->verdict != VERDICT_ALLOW)
		return http2_stream_refuse(stream, 403, decision->reason, decision);
	return forward(stream);
}

int http2_request_begin(struct http2_stream *stream)
{
	const struct http2 *http2 = stream->http2;
	struct exchange_record *record = &stream->record;
	struct http1_head *head = &stream->head;
	const char *problem = NULL;

	memcpy(stream->method, head->method, sizeof stream->method);
	stream->to[HTTP2_OUTSIDE].announces = http1_find(head, "content-length");
	record->started_ns = clock_monotonic_ns();
	stream->problem = check_request(stream);
	if (!stream->problem && target_parse(head->method, stream->path, &http2->server, &stream->target, &problem) < 0)
		stream->problem = problem ? problem : "there is no memory";
	if (stream->problem)
		return http2_stream_refuse(stream, 400, stream->problem, NULL);
	record->method = stream->method;
	record->decision = exchange_judge(&http2->hooks, record, &stream->target, http2->policy, &http2->server, NULL);
	return proceed(stream);
}

int http2_request_answered(struct http2_stream *stream, const struct decision *answer)
{
	const struct http2 *http2 = stream->http2;
	struct exchange_record *record = &stream->record;

	record->decision = exchange_judge(&http2->hooks, record, &stream->target, http2->policy, &http2->server,
					  answer);
	return proceed(stream);
}

int http2_answer_begin(struct http2_stream *stream)
{
	struct http2 *http2 = stream->http2;
	char status[16];
	struct http2_nvs nvs = { .count = 0 };

	if (str_format(status, sizeof status, "%u", stream->head.status) < 0)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	if (stream->head.status >= 200) {
		stream->is_answered = true;
		stream->to[HTTP2_INSIDE].announces = http1_find(&stream->head, "content-length");
		stream->record.status = stream->head.status;
	}
	stream->head.reason = "";
	if (http2->hooks.incoming)
		http2->hooks.incoming(http2->hooks.context, &stream->record, &stream->head);
	if (stream->is_answered)
		recorded_set_answer(stream->recorded, &stream->head);
	http2_nvs_add(&nvs, ":status", status, NGHTTP2_NV_FLAG_NONE);
	http2_nvs_add_fields(&nvs, &stream->head);
	if (stream->is_answered)
		return http2_stream_answer(stream, &nvs);
	return nghttp2_submit_headers(http2->sessions[HTTP2_INSIDE], NGHTTP2_FLAG_NONE, stream->to[HTTP2_INSIDE].id,
				      NULL, nvs.list, nvs.count, NULL);
}
