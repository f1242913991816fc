/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <nghttp2/nghttp2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "egress/credentials/inject.h"
#include "egress/http/http2.h"
#include "egress/http/progress.h"

/* A client and a server of nghttp2's own with the gate between them, all in memory. */

enum { MESSAGES_MAX = 8, TEXT_SIZE = 512 };

/* What came of one stream, at either end. */
struct message {
	int32_t id;
	char pseudo[TEXT_SIZE], fields[TEXT_SIZE], body[TEXT_SIZE];
	size_t body_size;
	bool is_whole, is_closed, has_trailers;
	uint32_t error;
	size_t to_send;      /* bytes of a body that this end sends: all 'x' */
	bool is_held;        /* … but not yet */
};

struct end {
	nghttp2_session *session;
	struct message messages[MESSAGES_MAX];
	size_t count;
	bool has_goaway, reads_nothing;
};

struct wire {
	struct end client, server;
	struct http2 *http2;
	struct exchange_record last;
	char last_path[64];
	size_t records;
	enum exchange_state states[HTTP2_SIDE_COUNT];
	uint32_t wait_s;     /* what the limits say to the next request */
};

static const struct target_server target_server = { "api.example.org", 443, true };
static const uint16_t ports[] = { 443 };
static const char *const paths[] = { "/v1/**", NULL };
static const struct http_rule http_rule = { .paths = paths, .origin = { "network.allow[0].http[0]" } };
static const struct net_rule net_rule = { .verdict = VERDICT_ALLOW, .host = "api.example.org", .ports = ports,
					  .port_count = 1, .http = &http_rule, .http_count = 1,
					  .inject = { .kind = INJECT_RAW, .name = "X-Api-Key", .secret = "s" },
					  .origin = { "network.allow[0]" } };
static const struct injection injection = { &net_rule, "sk-real-0123456789" };
static const struct injection short_injection = { &net_rule, "pass-123" };
static const struct policy policy = { .network = { .default_verdict = VERDICT_DENY, .rules = &net_rule,
						  .count = 1, .exact_count = 1 } };

static struct message *message_of(struct end *end, int32_t id)
{
	for (size_t i = 0; i < end->count; i++)
		if (end->messages[i].id == id)
			return &end->messages[i];
	assert_true(end->count < MESSAGES_MAX);
	end->messages[end->count].id = id;
	return &end->messages[end->count++];
}

static void append(char *text, const char *name, const char *value)
{
	size_t size = strlen(text);

	assert_int_equal(str_format(text + size, TEXT_SIZE - size, "%s: %s\n", name, value), 0);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_size,
		     const uint8_t *value, size_t value_size, uint8_t flags, void *context)
{
	struct message *message = message_of(context, frame->hd.stream_id);

	append(name[0] == ':' ? message->pseudo : message->fields, (const char *)name, (const char *)value);
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes, size_t size,
		   void *context)
{
	struct end *end = context;
	struct message *message = message_of(end, id);

	if (message->body_size + size < TEXT_SIZE)
		memcpy(message->body + message->body_size, bytes, size);
	message->body_size += size;
	if (!end->reads_nothing)
		nghttp2_session_consume(session, id, size);
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct end *end = context;

	if (frame->hd.type == NGHTTP2_GOAWAY)
		end->has_goaway = true;
	if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
	    frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
		message_of(end, frame->hd.stream_id)->is_whole = true;
		message_of(end, frame->hd.stream_id)->has_trailers = frame->hd.type == NGHTTP2_HEADERS;
	}
	return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *context)
{
	struct message *message = message_of(context, id);

	message->is_closed = true;
	message->error = error;
	return 0;
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *bytes, size_t max, uint32_t *flags,
			 nghttp2_data_source *source, void *context)
{
	struct message *message = message_of(context, id);
	size_t size = message->to_send < max ? message->to_send : max;

	if (message->is_held)
		return NGHTTP2_ERR_DEFERRED;
	memset(bytes, 'x', size);
	message->to_send -= size;
	if (!message->to_send)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)size;
}

static void end_init(struct end *end, bool is_server)
{
	nghttp2_session_callbacks *callbacks;
	nghttp2_option *option;

	assert_int_equal(nghttp2_session_callbacks_new(&callbacks), 0);
	assert_int_equal(nghttp2_option_new(&option), 0);
	nghttp2_option_set_no_auto_window_update(option, 1);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
	assert_int_equal((is_server ? nghttp2_session_server_new2
				    : nghttp2_session_client_new2)(&end->session, callbacks, end, option),
			 0);
	assert_int_equal(nghttp2_submit_settings(end->session, NGHTTP2_FLAG_NONE, NULL, 0), 0);
	nghttp2_session_callbacks_del(callbacks);
	nghttp2_option_del(option);
}

static bool on_outgoing(void *context, struct exchange_record *record, struct http1_head *head,
			const struct target *target, char **ret_owned, const char **ret_problem)
{
	const struct wire *wire = context;

	record->wait_s = wire->wait_s;
	*ret_problem = "too many";
	if (wire->wait_s)
		return false;
	return inject_request(&injection, &target_server, target, head, ret_owned) >= 0;
}

static void on_incoming(void *context, struct exchange_record *record, struct http1_head *head)
{
	assert_true(inject_redact(&injection, head) >= 0 && inject_redact(&short_injection, head) >= 0);
}

static void on_over(void *context, const struct exchange_record *record)
{
	struct wire *wire = context;

	wire->last = *record;
	assert_int_equal(str_copy(wire->last_path, sizeof wire->last_path, record->path), 0);
	wire->records++;
}

static void wire_init_recorded(struct wire *wire, struct recording *recording)
{
	struct exchange_hooks hooks = { .outgoing = on_outgoing, .incoming = on_incoming, .over = on_over,
					.context = wire, .recording = recording };

	*wire = (struct wire){ 0 };
	end_init(&wire->client, false);
	end_init(&wire->server, true);
	assert_int_equal(http2_new(&wire->http2, &target_server, &policy, &hooks), 0);
}

static void wire_init(struct wire *wire)
{
	wire_init_recorded(wire, NULL);
}

static void wire_done(struct wire *wire)
{
	nghttp2_session_del(wire->client.session);
	nghttp2_session_del(wire->server.session);
	http2_free(wire->http2);
}
#define cleanup_wire __attribute__((cleanup(wire_done)))

static bool give_from(struct wire *wire, struct end *end, enum http2_side side)
{
	const uint8_t *bytes;
	ssize_t size = nghttp2_session_mem_send(end->session, &bytes);

	if (size <= 0)
		return false;
	wire->states[side] = http2_give(wire->http2, side, bytes, (size_t)size);
	return true;
}

static bool take_to(struct wire *wire, struct end *end, enum http2_side side)
{
	cleanup_buf struct buf out;

	buf_init(&out, 1 << 20);
	wire->states[side] = http2_take(wire->http2, side, &out, 16 << 10);
	if (!out.size)
		return false;
	assert_true(nghttp2_session_mem_recv(end->session, out.bytes, out.size) == (ssize_t)out.size);
	return true;
}

/* Until nobody has anything to say. */
static void pump(struct wire *wire)
{
	bool moved = true;

	while (moved) {
		moved = give_from(wire, &wire->client, HTTP2_INSIDE);
		moved = take_to(wire, &wire->server, HTTP2_OUTSIDE) || moved;
		moved = give_from(wire, &wire->server, HTTP2_OUTSIDE) || moved;
		moved = take_to(wire, &wire->client, HTTP2_INSIDE) || moved;
	}
}

static nghttp2_nv nv(const char *name, const char *value)
{
	return (nghttp2_nv){ (uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), NGHTTP2_NV_FLAG_NONE };
}

static struct message *ask_full(struct wire *wire, const char *method, const char *authority, const char *path,
				const nghttp2_nv *more, size_t body)
{
	nghttp2_data_provider provider = { .read_callback = read_body };
	nghttp2_nv list[] = { nv(":method", method), nv(":scheme", "https"), nv(":authority", authority),
			      nv(":path", path), more ? *more : nv("accept", "*/*") };
	int32_t id = nghttp2_submit_request(wire->client.session, NULL, list, ARRAY_SIZE(list),
					    body ? &provider : NULL, NULL);
	struct message *message = message_of(&wire->client, id);

	assert_true(id > 0);
	message->to_send = body;
	pump(wire);
	return message;
}

static struct message *ask(struct wire *wire, const char *method, const char *path, size_t body)
{
	return ask_full(wire, method, "api.example.org", path, NULL, body);
}

static void answer(struct wire *wire, struct message *request, const char *status, size_t body)
{
	nghttp2_data_provider provider = { .read_callback = read_body };
	nghttp2_nv list[] = { nv(":status", status), nv("content-type", "text/plain"),
			      nv("location", "https://evil.example/?k=sk-real-0123456789") };

	request->to_send = body;
	assert_int_equal(nghttp2_submit_response(wire->server.session, request->id, list, ARRAY_SIZE(list),
						 body ? &provider : NULL), 0);
	pump(wire);
}

static void test_there_and_back(void **state)
{
	cleanup_wire struct wire wire;
	struct message *asked, *got;

	wire_init(&wire);
	for (size_t i = 1; i < 4; i++) {
		asked = ask(&wire, "GET", "/v1/x?y=1", 0);
		assert_int_equal(wire.server.count, i);
		got = &wire.server.messages[i - 1];
		assert_string_equal(
			got->pseudo,
			":method: GET\n:scheme: https\n:authority: api.example.org\n:path: /v1/x?y=1\n");
		assert_string_equal(got->fields, "accept: */*\nx-api-key: sk-real-0123456789\n");
		assert_true(got->is_whole);
		answer(&wire, got, "200", 5);
		assert_string_equal(asked->pseudo, ":status: 200\n");
		assert_string_equal(asked->fields, "content-type: text/plain\nlocation: [redacted by atoll]\n");
		assert_string_equal(asked->body, "xxxxx");
		assert_true(asked->is_whole && asked->is_closed);
		assert_int_equal(wire.records, i);
		assert_int_equal(wire.last.status, 200);
		assert_int_equal(wire.last.bytes_in, 5);
		assert_string_equal(wire.last_path, "/v1/x");
	}
	assert_int_equal(wire.states[HTTP2_INSIDE], EXCHANGE_OPEN);
}

static void test_refused_while_others_go_on(void **state)
{
	cleanup_wire struct wire wire;
	struct message *good, *bad;

	wire_init(&wire);
	good = ask(&wire, "GET", "/v1/x", 0);
	bad = ask(&wire, "GET", "/v1/%2e%2e/admin", 0);
	assert_string_equal(bad->pseudo, ":status: 403\n");
	assert_non_null(strstr(bad->body, "a server can read this path as another one"));
	assert_true(bad->is_closed);
	assert_int_equal(wire.server.count, 1);
	assert_int_equal(wire.last.decision.verdict, VERDICT_DENY);
	answer(&wire, &wire.server.messages[0], "204", 0);
	assert_string_equal(good->pseudo, ":status: 204\n");
	assert_int_equal(wire.records, 2);
}

static void test_too_many_requests(void **state)
{
	cleanup_wire struct wire wire;
	struct message *asked;

	wire_init(&wire);
	wire.wait_s = 17;
	asked = ask(&wire, "GET", "/v1/x", 0);
	assert_string_equal(asked->pseudo, ":status: 429\n");
	assert_non_null(strstr(asked->fields, "retry-after: 17\n"));
	assert_non_null(strstr(asked->body, "\"reason\":\"too many\",\"rule\":\"network.limits.requests\""));
	assert_true(asked->is_closed && wire.server.count == 0 && wire.last.status == 429 && wire.last.wait_s == 17);
	/* The connection goes on. */
	wire.wait_s = 0;
	asked = ask(&wire, "GET", "/v1/x", 0);
	answer(&wire, &wire.server.messages[0], "204", 0);
	assert_string_equal(asked->pseudo, ":status: 204\n");
}

static void test_requests_that_are_none(void **state)
{
	static const struct {
		const char *method, *authority, *path, *name;
	} bad[] = {
		{ "GET", "evil.example", "/v1/x", "a" }, { "GET", "api.example.org:80", "/v1/x", "a" },
		{ "GET", "user@api.example.org", "/v1/x", "a" }, { "TRACE", "api.example.org", "/v1/x", "a" },
		{ "get", "api.example.org", "/v1/x", "a" }, { "GET", "api.example.org", "/v1/%0g", "a" },
		{ "GET", "api.example.org", "https://api.example.org:444/v1", "a" },
		{ "GET", "api.example.org", "/v1/x", "content_length" }, { "GET", "api.example.org", "/v1/x", "host" },
		{ "AVERYLONGMETHODTHATNOBODYKNOWS", "api.example.org", "/v1/x", "a" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		cleanup_wire struct wire wire;
		nghttp2_nv more = nv(bad[i].name, "evil.example");
		struct message *asked;

		wire_init(&wire);
		asked = ask_full(&wire, bad[i].method, bad[i].authority, bad[i].path, &more, 0);
		/* By us, or by nghttp2 before us. */
		if (!asked->is_closed || (strcmp(asked->pseudo, ":status: 400\n") != 0 && !asked->error))
			fail_msg("%zu: %s", i, asked->pseudo);
		assert_int_equal(wire.server.count, 0);
	}
}

static void test_placeholder_goes(void **state)
{
	cleanup_wire struct wire wire;
	nghttp2_nv more = nv("x-api-key", "placeholder");

	wire_init(&wire);
	ask_full(&wire, "GET", "api.example.org", "/v1/x", &more, 0);
	assert_string_equal(wire.server.messages[0].fields, "x-api-key: sk-real-0123456789\n");
}

static void test_large_bodies_both_ways(void **state)
{
	enum { SIZE = 5 << 20 };
	cleanup_wire struct wire wire;
	struct message *asked, *got;

	wire_init(&wire);
	for (size_t i = 0; i < 3; i++) {
		asked = ask(&wire, "POST", "/v1/x", SIZE);
		got = &wire.server.messages[i];
		assert_int_equal(got->body_size, SIZE);
		assert_true(got->is_whole);
		answer(&wire, got, "200", SIZE);
		assert_int_equal(asked->body_size, SIZE);
		assert_true(asked->is_closed && !asked->error);
		assert_int_equal(wire.last.bytes_out, SIZE);
		assert_int_equal(wire.last.bytes_in, SIZE);
	}
}

/* Who does not read stops who writes: no more than the windows is on the way. */
static void test_back_pressure(void **state)
{
	enum { SIZE = 64 << 20 };
	cleanup_wire struct wire wire;
	struct message *asked, *got;

	wire_init(&wire);
	wire.server.reads_nothing = true;
	asked = ask(&wire, "POST", "/v1/x", SIZE);
	got = &wire.server.messages[0];
	assert_in_range(got->body_size, 1, 65535);
	assert_in_range(SIZE - asked->to_send, got->body_size, got->body_size + HTTP2_STREAM_WINDOW + (64 << 10));
	assert_false(got->is_whole);
}

static void test_streams_at_once(void **state)
{
	cleanup_wire struct wire wire;
	struct message *asked[4];

	wire_init(&wire);
	for (size_t i = 0; i < 4; i++)
		asked[i] = ask(&wire, "GET", "/v1/x", 0);
	for (size_t i = 4; i-- > 0;)
		answer(&wire, &wire.server.messages[i], i % 2 ? "200" : "404", 10 * i + 1);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(asked[i]->body_size, 10 * i + 1);
		assert_string_equal(asked[i]->pseudo, i % 2 ? ":status: 200\n" : ":status: 404\n");
	}
}

static void test_interim_answers_and_trailers(void **state)
{
	cleanup_wire struct wire wire;
	nghttp2_nv hint[] = { nv(":status", "103"), nv("link", "x") }, trailer[] = { nv("grpc-status", "0") },
		   final[] = { nv(":status", "200") };
	struct message *asked, *got;

	wire_init(&wire);
	asked = ask(&wire, "GET", "/v1/x", 0);
	got = &wire.server.messages[0];
	assert_int_equal(nghttp2_submit_headers(wire.server.session, 0, got->id, NULL, hint, 2, NULL), 0);
	pump(&wire);
	assert_string_equal(asked->pseudo, ":status: 103\n");
	assert_int_equal(nghttp2_submit_headers(wire.server.session, 0, got->id, NULL, final, 1, NULL), 0);
	assert_int_equal(nghttp2_submit_trailer(wire.server.session, got->id, trailer, 1), 0);
	pump(&wire);
	assert_string_equal(asked->pseudo, ":status: 103\n:status: 200\n");
	assert_string_equal(asked->fields, "link: x\ngrpc-status: 0\n");
	assert_true(asked->has_trailers && asked->is_closed);
	assert_int_equal(wire.last.status, 200);
}

/* They come in as well. The mark is longer than what it stands for: names are found all the same. */
static void test_the_credential_in_interim_answers_and_trailers(void **state)
{
	cleanup_wire struct wire wire;
	nghttp2_nv hint[] = { nv(":status", "103"), nv("link", "sk-real-0123456789") },
		   final[] = { nv(":status", "200"), nv("e", "pass-123"), nv("x-sk-real-0123456789", "1") },
		   trailer[] = { nv("grpc-message", "not sk-real-0123456789"), nv("grpc-status", "0") };
	struct message *asked, *got;

	wire_init(&wire);
	asked = ask(&wire, "GET", "/v1/x", 0);
	got = &wire.server.messages[0];
	assert_int_equal(nghttp2_submit_headers(wire.server.session, 0, got->id, NULL, hint, 2, NULL), 0);
	pump(&wire);
	assert_int_equal(nghttp2_submit_headers(wire.server.session, 0, got->id, NULL, final, 3, NULL), 0);
	assert_int_equal(nghttp2_submit_trailer(wire.server.session, got->id, trailer, 2), 0);
	pump(&wire);
	assert_string_equal(asked->fields, "link: [redacted by atoll]\ne: [redacted by atoll]\n"
					   "redacted-by-atoll: [redacted by atoll]\n"
					   "grpc-message: [redacted by atoll]\ngrpc-status: 0\n");
	assert_true(asked->has_trailers && asked->is_closed);
}

static void test_given_up_on_either_side(void **state)
{
	cleanup_wire struct wire wire;
	struct message *asked, *got;

	wire_init(&wire);
	asked = ask(&wire, "GET", "/v1/x", 0);
	got = &wire.server.messages[0];
	assert_int_equal(nghttp2_submit_rst_stream(wire.client.session, 0, asked->id, NGHTTP2_CANCEL), 0);
	pump(&wire);
	assert_true(got->is_closed);
	assert_int_equal(got->error, NGHTTP2_CANCEL);
	asked = ask(&wire, "GET", "/v1/y", 0);
	got = &wire.server.messages[1];
	assert_int_equal(nghttp2_submit_rst_stream(wire.server.session, 0, got->id, NGHTTP2_REFUSED_STREAM), 0);
	pump(&wire);
	assert_string_equal(asked->pseudo, ":status: 502\n");
	assert_int_equal(wire.records, 2);
}

static void test_answered_before_the_request_ends(void **state)
{
	cleanup_wire struct wire wire;
	struct message *asked;

	wire_init(&wire);
	wire.client.messages[0] = (struct message){ .id = 1, .is_held = true };
	wire.client.count = 1;
	asked = ask(&wire, "POST", "/v1/x", 100);
	answer(&wire, &wire.server.messages[0], "413", 3);
	assert_string_equal(asked->pseudo, ":status: 413\n");
	assert_int_equal(asked->body_size, 3);
	assert_true(asked->is_whole && !asked->is_closed);
	/* The server does not want the rest. */
	assert_int_equal(nghttp2_submit_rst_stream(wire.server.session, 0, asked->id, NGHTTP2_NO_ERROR), 0);
	pump(&wire);
	assert_true(asked->is_closed);
	assert_int_equal(asked->error, NGHTTP2_NO_ERROR);
}

static void test_the_server_goes(void **state)
{
	cleanup_wire struct wire wire;
	struct message *asked;

	wire_init(&wire);
	asked = ask(&wire, "GET", "/v1/x", 0);
	http2_ended(wire.http2, HTTP2_OUTSIDE);
	pump(&wire);
	assert_string_equal(asked->pseudo, ":status: 502\n");
	assert_true(asked->is_closed && wire.client.has_goaway);
	assert_int_equal(wire.states[HTTP2_INSIDE], EXCHANGE_ENDED);
}

/* It had not taken the request's body yet, which is gone with the stream when the client has its answer. */
static void test_the_server_goes_in_an_upload(void **state)
{
	nghttp2_nv request[] = { nv(":method", "POST"), nv(":scheme", "https"), nv(":authority", "api.example.org"),
				 nv(":path", "/v1/x") };
	nghttp2_data_provider body = { .read_callback = read_body };
	cleanup_wire struct wire wire;
	struct message *asked;
	cleanup_buf struct buf out;

	buf_init(&out, 1 << 20);
	wire_init(&wire);
	pump(&wire);
	asked = &wire.client.messages[wire.client.count++];
	asked->to_send = 20000;
	asked->id = nghttp2_submit_request(wire.client.session, NULL, request, ARRAY_SIZE(request), &body, NULL);
	while (give_from(&wire, &wire.client, HTTP2_INSIDE))
		;
	http2_ended(wire.http2, HTTP2_OUTSIDE);
	while (take_to(&wire, &wire.client, HTTP2_INSIDE) || give_from(&wire, &wire.client, HTTP2_INSIDE))
		;
	assert_string_equal(asked->pseudo, ":status: 502\n");
	assert_true(asked->is_closed);
	(void)http2_take(wire.http2, HTTP2_OUTSIDE, &out, 1 << 19);
	assert_int_equal(out.size, 0);
}

static void test_the_client_goes(void **state)
{
	cleanup_wire struct wire wire;

	wire_init(&wire);
	ask(&wire, "GET", "/v1/x", 0);
	http2_ended(wire.http2, HTTP2_INSIDE);
	pump(&wire);
	assert_true(wire.server.has_goaway);
	assert_int_equal(wire.states[HTTP2_OUTSIDE], EXCHANGE_ENDED);
}

static void test_requests_that_are_given_up_at_once(void **state)
{
	cleanup_wire struct wire wire;

	wire_init(&wire);
	for (size_t i = 0; i < HTTP2_RESETS_MAX + 10 && wire.states[HTTP2_INSIDE] == EXCHANGE_OPEN; i++) {
		struct message *asked = ask(&wire, "GET", "/v1/x", 0);

		nghttp2_submit_rst_stream(wire.client.session, 0, asked->id, NGHTTP2_CANCEL);
		pump(&wire);
		wire.client.count = wire.server.count = 0;
		memset(wire.client.messages, 0, sizeof wire.client.messages);
		memset(wire.server.messages, 0, sizeof wire.server.messages);
	}
	assert_int_equal(wire.states[HTTP2_INSIDE], EXCHANGE_ENDED);
}

static void test_garbage(void **state)
{
	cleanup_wire struct wire wire;

	wire_init(&wire);
	assert_int_equal(http2_give(wire.http2, HTTP2_INSIDE, (const uint8_t *)"GET / HTTP/1.1\r\n\r\n", 18),
			 EXCHANGE_ENDED);
}

static struct recording *replay_of(int fd)
{
	struct recording *recording;
	struct err err;

	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(recording_read(&recording, fd, &err), 0);
	return recording;
}

static void test_recorded_and_answered_again(void **state)
{
	int fd = memfd_create("recording", 0);
	char text[4096] = "";
	struct message *asked;
	struct recording *recording;
	struct wire wire;
	struct err err;

	assert_int_equal(recording_write(&recording, dup(fd), &err), 0);
	wire_init_recorded(&wire, recording);
	ask(&wire, "POST", "/v1/x", 3);
	answer(&wire, &wire.server.messages[0], "200", 5);
	wire_done(&wire);
	recording_free(recording);
	assert_true(pread(fd, text, sizeof text - 1, 0) > 0);
	assert_null(strstr(text, "sk-real"));
	assert_non_null(strstr(text, "\"body\":\"xxxxx\""));

	recording = replay_of(fd);
	wire_init_recorded(&wire, recording);
	http2_set_unreachable(wire.http2, "no server is asked");
	asked = ask(&wire, "POST", "/v1/x", 3);
	assert_string_equal(asked->pseudo, ":status: 200\n");
	assert_string_equal(asked->fields, "content-type: text/plain\nlocation: [redacted by atoll]\n");
	assert_string_equal(asked->body, "xxxxx");
	assert_true(asked->is_whole && asked->is_closed && wire.last.is_replayed);
	assert_int_equal(wire.last.bytes_out, 3);
	assert_int_equal(wire.last.bytes_in, 5);
	asked = ask(&wire, "GET", "/v1/y", 0);
	assert_string_equal(asked->pseudo, ":status: 403\n");
	assert_true(wire.last.is_not_recorded);
	assert_int_equal(wire.server.count, 0);
	wire_done(&wire);
	recording_free(recording);
}

#define EMPTY_HASH "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define RECORDED(target, trailers, whole) \
	"{\"request\":{\"method\":\"GET\",\"host\":\"api.example.org\",\"port\":443,\"target\":\"" target "\"," \
	"\"http\":\"2\",\"body_sha256\":\"" EMPTY_HASH "\"},\"answer\":{\"status\":200,\"reason\":\"\"," \
	"\"headers\":[[\"X-Upper\",\"1\"]],\"trailers\":" trailers ",\"body\":\"half\",\"framing\":\"none\"," \
	"\"closes\":false,\"whole\":" whole "}}\n"

static void test_trailers_and_answers_that_break_off(void **state)
{
	static const char text[] = "{\"atoll\":\"recording\",\"v\":1}\n"
				   RECORDED("/v1/trailers", "[[\"Grpc-Status\",\"0\"]]", "true")
				   RECORDED("/v1/cut", "[]", "false");
	int fd = memfd_create("recording", 0);
	struct message *asked;
	struct recording *recording;
	struct wire wire;

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	recording = replay_of(fd);
	wire_init_recorded(&wire, recording);
	asked = ask(&wire, "GET", "/v1/trailers", 0);
	assert_string_equal(asked->body, "half");
	assert_string_equal(asked->fields, "x-upper: 1\ngrpc-status: 0\n");
	assert_true(asked->has_trailers && asked->is_whole);
	asked = ask(&wire, "GET", "/v1/cut", 0);
	assert_string_equal(asked->body, "half");
	assert_true(asked->is_closed && !asked->is_whole);
	assert_int_equal(asked->error, NGHTTP2_INTERNAL_ERROR);
	wire_done(&wire);
	recording_free(recording);
}

static void look(struct wire *wire, unsigned times)
{
	while (times--) {
		http2_look(wire->http2);
		pump(wire);
	}
}

/* A body of that length, of which nothing comes; NULL: it does not say. */
static struct message *ask_and_keep_back(struct wire *wire, const char *length)
{
	nghttp2_nv field = nv("content-length", length ? length : "");

	message_of(&wire->client, (int32_t)(2 * wire->client.count + 1))->is_held = true;
	return ask_full(wire, "POST", "api.example.org", "/v1/x", length ? &field : NULL, 1000000);
}

static void test_bodies_that_do_not_come(void **state)
{
	nghttp2_data_provider provider = { .read_callback = read_body };
	nghttp2_nv list[] = { nv(":status", "200"), nv("content-length", "1000000") };
	struct message *slow, *stream, *asked, *got;
	cleanup_wire struct wire wire;

	wire_init(&wire);
	slow = ask_and_keep_back(&wire, "1000000");
	stream = ask_and_keep_back(&wire, NULL);
	look(&wire, PROGRESS_LOOKS);
	assert_string_equal(slow->pseudo, "");
	look(&wire, 1);
	assert_string_equal(slow->pseudo, ":status: 408\n");
	assert_non_null(strstr(slow->body, "the body of the request comes too slowly"));
	assert_true(slow->is_closed && wire.server.messages[0].is_closed);
	assert_string_equal(wire.last.problem, exchange_slow_request);
	look(&wire, 100);
	assert_false(stream->is_closed);
	asked = ask(&wire, "GET", "/v1/x", 0);
	got = &wire.server.messages[2];
	got->to_send = 1000000;
	got->is_held = true;
	assert_int_equal(nghttp2_submit_response(wire.server.session, got->id, list, ARRAY_SIZE(list), &provider), 0);
	pump(&wire);
	look(&wire, PROGRESS_LOOKS);
	assert_false(asked->is_closed);
	look(&wire, 1);
	assert_true(asked->is_closed && got->is_closed && !asked->is_whole);
	assert_string_equal(wire.last.problem, exchange_slow_answer);
	assert_false(stream->is_closed);
	assert_int_equal(wire.states[HTTP2_INSIDE], EXCHANGE_OPEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recorded_and_answered_again),
		cmocka_unit_test(test_trailers_and_answers_that_break_off),
		cmocka_unit_test(test_bodies_that_do_not_come),
		cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_refused_while_others_go_on),
		cmocka_unit_test(test_requests_that_are_none),
		cmocka_unit_test(test_too_many_requests), cmocka_unit_test(test_placeholder_goes),
		cmocka_unit_test(test_large_bodies_both_ways), cmocka_unit_test(test_back_pressure),
		cmocka_unit_test(test_streams_at_once), cmocka_unit_test(test_interim_answers_and_trailers),
		cmocka_unit_test(test_the_credential_in_interim_answers_and_trailers),
		cmocka_unit_test(test_given_up_on_either_side), cmocka_unit_test(test_answered_before_the_request_ends),
		cmocka_unit_test(test_the_server_goes), cmocka_unit_test(test_the_server_goes_in_an_upload),
		cmocka_unit_test(test_the_client_goes),
		cmocka_unit_test(test_requests_that_are_given_up_at_once), cmocka_unit_test(test_garbage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
