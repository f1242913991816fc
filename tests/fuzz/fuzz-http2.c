/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An intercepted HTTP/2 connection from arbitrary bytes on both sides (the first two: how many are the client's, whose
 * preface is supplied). What goes out is read by a server of nghttp2's: only requests to the right host below the path
 * that is allowed, each with the credential exactly once.
 */

#include <nghttp2/nghttp2.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "egress/credentials/inject.h"
#include "egress/http/http2.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const struct target_server server = { "a.example", 443, true };
static const uint16_t ports[] = { 443 };
static const char *const paths[] = { "/v1/**", NULL };
static const struct http_rule http_rule = { .paths = paths, .origin = { "h" } };
static const struct net_rule net_rule = { .verdict = VERDICT_ALLOW, .host = "a.example", .ports = ports,
					  .port_count = 1, .http = &http_rule, .http_count = 1,
					  .inject = { .kind = INJECT_RAW, .name = "x-api-key", .secret = "s" },
					  .origin = { "n" } };
static const struct policy policy = { .network = { .default_verdict = VERDICT_DENY, .rules = &net_rule,
						  .count = 1, .exact_count = 1 } };
static const struct injection injection = { &net_rule, "SECRET0SECRET1SECRET2" };

static void require(bool condition)
{
	if (!condition)
		abort();
}

static bool on_outgoing(void *context, struct exchange_record *record, struct http1_head *head,
			const struct target *target, char **ret_owned, const char **ret_problem)
{
	*ret_problem = "fuzz";
	return inject_request(&injection, &server, target, head, ret_owned) == INJECT_DONE;
}

static void on_incoming(void *context, struct exchange_record *record, struct http1_head *head)
{
	require(inject_redact(&injection, head) >= 0);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name_bytes, size_t name_size,
		     const uint8_t *value_bytes, size_t value_size, uint8_t flags, void *context)
{
	const char *name = (const char *)name_bytes, *value = (const char *)value_bytes, *problem;
	struct action request = { .kind = ACTION_HTTP_REQUEST, .subject = server.host, .port = server.port,
				  .method = "GET" };
	struct target target;
	size_t *keys = context;

	if (str_equal(name, ":authority") || str_equal(name, "host"))
		require(target_host_is(value, &server));
	if (str_equal(name, ":path")) {
		require(target_parse("GET", value, &server, &target, &problem) == 0);
		require(target_judge(&target, &policy, &request).verdict == VERDICT_ALLOW);
		target_done(&target);
	}
	if (str_equal(name, "x-api-key")) {
		require(str_equal(value, injection.secret));
		++*keys;
	}
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	size_t *keys = context;

	if (frame->hd.type != NGHTTP2_HEADERS)
		return 0;
	require(*keys == 1 && frame->headers.cat == NGHTTP2_HCAT_REQUEST);
	*keys = 0;
	return 0;
}

static nghttp2_session *make_server(size_t *keys)
{
	nghttp2_session_callbacks *callbacks;
	nghttp2_session *session;

	require(nghttp2_session_callbacks_new(&callbacks) == 0);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	require(nghttp2_session_server_new(&session, callbacks, keys) == 0);
	nghttp2_session_callbacks_del(callbacks);
	return session;
}

static void flush(struct http2 *http2, nghttp2_session *checker)
{
	struct buf out;

	for (int side = 0; side < HTTP2_SIDE_COUNT; side++) {
		buf_init(&out, 8 << 20);
		http2_take(http2, (enum http2_side)side, &out, 4 << 20);
		if (side == HTTP2_OUTSIDE && out.size)
			require(nghttp2_session_mem_recv(checker, out.bytes, out.size) == (ssize_t)out.size);
		buf_done(&out);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const struct exchange_hooks hooks = { .outgoing = on_outgoing, .incoming = on_incoming };
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	size_t keys = 0, client;
	nghttp2_session *checker;
	struct http2 *http2;

	if (size < 2)
		return 0;
	client = (size_t)bytes[0] << 8 | bytes[1];
	bytes += 2;
	size -= 2;
	client = client < size ? client : size;
	checker = make_server(&keys);
	require(http2_new(&http2, &server, &policy, &hooks) == 0);
	http2_give(http2, HTTP2_INSIDE, (const uint8_t *)preface, sizeof preface - 1);
	http2_give(http2, HTTP2_INSIDE, bytes, client);
	flush(http2, checker);
	http2_give(http2, HTTP2_OUTSIDE, bytes + client, size - client);
	flush(http2, checker);
	http2_ended(http2, HTTP2_OUTSIDE);
	flush(http2, checker);
	http2_ended(http2, HTTP2_INSIDE);
	flush(http2, checker);
	http2_free(http2);
	nghttp2_session_del(checker);
	return 0;
}
