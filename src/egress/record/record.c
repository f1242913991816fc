/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/record/record.h"

#include <string.h>

#include "base/json.h"
#include "egress/message/http1-head.h"
#include "egress/record/redact.h"

const char *const record_framing_names[HTTP1_UNTIL_END + 1] = {
	[HTTP1_NO_BODY] = "none", [HTTP1_LENGTH] = "length", [HTTP1_CHUNKED] = "chunked", [HTTP1_UNTIL_END] = "end",
};

void record_body_init(struct record_body *body)
{
	*body = (struct record_body){ 0 };
	buf_init(&body->kept, RECORD_BODY_MAX);
	hash_stream_begin(&body->hash);
}

void record_body_done(struct record_body *body)
{
	buf_done(&body->kept);
}

void record_body_add(struct record_body *body, const void *bytes, size_t size, size_t *room)
{
	hash_stream_add(&body->hash, bytes, size);
	body->size_bytes += size;
	if (body->is_left_out)
		return;
	if (size <= *room && body->kept.size + size <= RECORD_BODY_MAX)
		buf_put(&body->kept, bytes, size);
	if (body->kept.size == body->size_bytes) {
		*room -= size;
		return;
	}
	*room += body->size_bytes - size;
	buf_done(&body->kept);
	body->is_left_out = true;
}

void record_put_start(struct buf *out)
{
	struct json json;

	json_init(&json, out);
	json_object_begin(&json, NULL);
	json_string(&json, "atoll", "recording");
	json_u64(&json, "v", RECORD_VERSION);
	json_object_end(&json);
	buf_put_char(out, '\n');
}

void record_hide(const struct record_hidden *hidden, const void *bytes, size_t size, struct buf *out)
{
	const uint8_t *at = bytes;
	size_t before = out->size;
	struct scan *scan = NULL;
	struct scan_met met;
	uint32_t all = 0;
	int r;

	if (!hidden->scanner) {
		buf_put(out, bytes, size);
		return;
	}
	r = scan_new(&scan, hidden->scanner);
	for (size_t piece; r == 0 && size; at += piece, size -= piece) {
		piece = size < SCAN_FEED_MAX ? size : SCAN_FEED_MAX;
		r = scan_feed(scan, at, piece, hidden->words, out, &met);
		all |= met.words;
	}
	if (r == 0)
		r = scan_finish(scan, hidden->words, out, &met);
	if (r == 0 && (all | met.words) & hidden->long_words && out->size > before)
		memset(out->bytes + before, '*', out->size - before);
	scan_free(scan);
	if (r < 0 && !out->error)
		out->error = r;
}

/* As a byte string. */
static void put_hidden(struct json *json, const char *key, const struct record_exchange *exchange, struct buf *scratch)
{
	cleanup_buf struct buf shown;

	buf_init(&shown, scratch->size);
	record_hide(&exchange->hidden, scratch->bytes, scratch->size, &shown);
	json_bytes(json, key, shown.bytes ? (const void *)shown.bytes : "", shown.size);
	if (buf_error(&shown) < 0)
		json->out->error = buf_error(&shown);
}

static void put_fields(struct json *json, const char *key, const struct record_exchange *exchange,
		       const struct http1_head *head, struct buf *scratch)
{
	json_array_begin(json, key);
	for (size_t i = 0; head && i < head->field_count; i++) {
		const struct http1_field *field = &head->fields[i];

		/* The length is kept: an answer to HEAD has it and no body. */
		if (http1_name_is_of_hop(field->name) && !http1_name_is(field->name, "content-length"))
			continue;
		buf_reset(scratch);
		redact_put_value(field->name, field->value, scratch);
		json_array_begin(json, NULL);
		json_string(json, NULL, field->name);
		put_hidden(json, NULL, exchange, scratch);
		json_array_end(json);
	}
	json_array_end(json);
}

static void put_body(struct json *json, const struct record_exchange *exchange, struct record_body *body,
		     const struct hash *hash, bool is_left_out)
{
	char hex[HASH_HEX_SIZE];

	json_u64(json, "body_bytes", body->size_bytes);
	hash_to_hex(hash, hex);
	json_string(json, "body_sha256", hex);
	if (body->is_left_out || is_left_out)
		json_null(json, "body");
	else
		put_hidden(json, "body", exchange, &body->kept);
}

static void put_request(struct json *json, const struct record_exchange *exchange, const struct hash *hash,
			bool is_left_out, struct buf *scratch)
{
	const struct http1_head *request = exchange->request;

	json_object_begin(json, "request");
	json_string(json, "method", request->method);
	json_string(json, "host", exchange->server->host);
	json_u64(json, "port", exchange->server->port);
	buf_reset(scratch);
	redact_put_target(request->target, scratch);
	put_hidden(json, "target", exchange, scratch);
	json_string(json, "http", exchange->is_http2 ? "2" : "1.1");
	put_fields(json, "headers", exchange, request, scratch);
	put_body(json, exchange, exchange->sent, hash, is_left_out);
	json_object_end(json);
}

static void put_answer(struct json *json, const struct record_exchange *exchange, const struct hash *hash,
		       bool is_left_out, struct buf *scratch)
{
	const struct http1_head *answer = exchange->answer;

	if (!answer) {
		json_null(json, "answer");
		return;
	}
	json_object_begin(json, "answer");
	json_u64(json, "status", answer->status);
	json_bytes(json, "reason", answer->reason, strlen(answer->reason));
	put_fields(json, "headers", exchange, answer, scratch);
	put_fields(json, "trailers", exchange, exchange->trailers, scratch);
	put_body(json, exchange, exchange->received, hash, is_left_out);
	json_string(json, "framing", record_framing_names[answer->framing]);
	json_bool(json, "closes", answer->closes);
	json_bool(json, "whole", exchange->is_whole);
	json_object_end(json);
}

void record_put_exchange(const struct record_exchange *exchange, struct buf *out)
{
	cleanup_buf struct buf scratch;
	struct hash sent, received;
	struct json json;

	buf_init(&scratch, HTTP1_HEAD_MAX);
	hash_stream_end(&exchange->sent->hash, &sent);
	hash_stream_end(&exchange->received->hash, &received);
	for (int left_out = 0; left_out <= 2; left_out++) {
		buf_reset(out);
		json_init(&json, out);
		json_object_begin(&json, NULL);
		json_u64(&json, "at_us", exchange->at_us);
		json_u64(&json, "us", exchange->us);
		put_request(&json, exchange, &sent, left_out > 0, &scratch);
		put_answer(&json, exchange, &received, left_out > 1, &scratch);
		json_object_end(&json);
		buf_put_char(out, '\n');
		if (buf_error(out) != -ENOBUFS)
			return;
	}
}
