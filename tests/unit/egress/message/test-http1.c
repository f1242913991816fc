/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "egress/message/http1.h"

enum { OUT_MAX = 1 << 20 };

/* Feeds text in pieces of step bytes; what comes out, head first, is in *out. The last result. */
static enum http1_result feed(struct http1 *http, const char *text, size_t step, struct buf *out, size_t *ret_used)
{
	size_t size = strlen(text), at = 0, used;
	enum http1_result result = HTTP1_MORE;

	while (at < size && (result == HTTP1_MORE || result == HTTP1_HEAD)) {
		size_t piece = size - at < step ? size - at : step;

		result = http1_feed(http, (const uint8_t *)text + at, piece, out, &used);
		assert_true(used <= piece);
		at += used;
		if (result == HTTP1_HEAD)
			http1_put_head(&http->head, out);
	}
	if (result == HTTP1_HEAD)
		result = http1_feed(http, NULL, 0, out, &used);
	*ret_used = at;
	return result;
}

static void check(enum http1_kind kind, const char *method, const char *text, const char *wanted, size_t rest)
{
	for (size_t step = 1; step < strlen(text) + 2; step += step < 20 ? 1 : 37) {
		struct http1_head request = { .kind = HTTP1_REQUEST };
		cleanup_buf struct buf out;
		struct http1 http;
		size_t used;

		buf_init(&out, OUT_MAX);
		http1_init(&http, kind);
		assert_int_equal(str_copy(request.method, sizeof request.method, method), 0);
		http1_expect(&http, &request);
		if (feed(&http, text, step, &out, &used) != HTTP1_END)
			fail_msg("%s: %s", http.problem, text);
		assert_int_equal(used, strlen(text) - rest);
		assert_string_equal(buf_text(&out), wanted);
		http1_done(&http);
	}
}

static void check_refused(enum http1_kind kind, const char *text, const char *problem)
{
	for (size_t step = 1; step < strlen(text) + 2; step += 7) {
		cleanup_buf struct buf out;
		struct http1 http;
		size_t used;

		buf_init(&out, OUT_MAX);
		http1_init(&http, kind);
		if (feed(&http, text, step, &out, &used) != HTTP1_BAD)
			fail_msg("not refused: %s", text);
		assert_int_equal(out.size && !memmem(out.bytes, out.size, "\r\n\r\n", 4), 0);
		if (problem && !strstr(http.problem, problem))
			fail_msg("\"%s\" is not in \"%s\"", problem, http.problem);
		/* Nothing comes after it. */
		assert_int_equal(http1_feed(&http, (const uint8_t *)"GET", 3, &out, &used), HTTP1_BAD);
		assert_int_equal(used, 0);
		http1_done(&http);
	}
}

static void test_requests(void **state)
{
	check(HTTP1_REQUEST, "", "GET /x?y=1 HTTP/1.1\r\nHost: a\r\nAccept:  */* \r\n\r\n",
	      "GET /x?y=1 HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n", 0);
	check(HTTP1_REQUEST, "", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloGET",
	      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", 3);
	check(HTTP1_REQUEST, "", "\r\nPUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
	      "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", 0);
	check(HTTP1_REQUEST, "", "GET / HTTP/1.0\r\nHost: a\r\n\r\n",
	      "GET / HTTP/1.0\r\nHost: a\r\nConnection: close\r\n\r\n", 0);
	check(HTTP1_REQUEST, "", "GET / HTTP/1.0\r\nHost: a\r\nConnection: Keep-Alive\r\n\r\n",
	      "GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n", 0);
}

static void test_fields_of_one_hop_stay_behind(void **state)
{
	check(HTTP1_REQUEST, "",
	      "GET / HTTP/1.1\r\nHost: a\r\nConnection: close, X-Key\r\nKeep-Alive: "
	      "5\r\nProxy-Authorization: x\r\nTE: trailers\r\n"
	      "Upgrade: h2c\r\nHTTP2-Settings: x\r\nProxy_Connection: x\r\nX-Key: 1\r\n\r\n",
	      "GET / HTTP/1.1\r\nHost: a\r\nX-Key: 1\r\nConnection: close\r\n\r\n", 0);
}

static void test_chunks_are_framed_anew(void **state)
{
	for (size_t step = 1; step < 100; step += 9) {
		static const char text[] = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
					   "5;x=\"y\"\r\nhello\r\n0006\r\n world\r\n000\r\n\r\n";
		cleanup_buf struct buf out;
		struct http1 http;
		size_t used;

		buf_init(&out, OUT_MAX);
		http1_init(&http, HTTP1_REQUEST);
		assert_int_equal(feed(&http, text, step, &out, &used), HTTP1_END);
		assert_int_equal(used, sizeof text - 1);
		assert_null(strstr(buf_text(&out), "x="));
		assert_non_null(strstr(buf_text(&out), "\r\n\r\n"));
		assert_true(str_has_suffix(buf_text(&out), "\r\n0\r\n\r\n"));
		assert_int_equal(http.body_bytes, 11);
		if (step > 90)
			assert_non_null(strstr(buf_text(&out), "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"));
		http1_done(&http);
	}
}

static void test_trailers(void **state)
{
	check(HTTP1_RESPONSE, "GET",
	      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Sum\r\nETag: x\r\n\r\n0\r\nSum:  "
	      "1\r\nContent-Length: 5\r\n"
	      "Set-Cookie: a\r\nETag: y\r\nGrpc-Status: 0\r\n\r\n",
	      "HTTP/1.1 200 OK\r\nTrailer: Sum\r\nETag: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nSum: "
	      "1\r\nGrpc-Status: 0\r\n\r\n",
	      0);
	check_refused(
		HTTP1_REQUEST,
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nbad name: x\r\n\r\n",
		NULL);
}

static void test_responses(void **state)
{
	check(HTTP1_RESPONSE, "GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n\r\nok",
	      "HTTP/1.1 200 OK\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nContent-Length: 2\r\n\r\nok", 0);
	check(HTTP1_RESPONSE, "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\nHTTP",
	      "HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n", 4);
	check(HTTP1_RESPONSE, "HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
	      "HTTP/1.1 200 OK\r\n\r\n", 0);
	check(HTTP1_RESPONSE, "GET", "HTTP/1.1 204 \r\n\r\n", "HTTP/1.1 204 \r\n\r\n", 0);
	check(HTTP1_RESPONSE, "GET", "HTTP/1.1 304\r\nContent-Length: 7\r\n\r\n",
	      "HTTP/1.1 304 \r\nContent-Length: 7\r\n\r\n", 0);
	check(HTTP1_RESPONSE, "GET", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200", "HTTP/1.1 100 Continue\r\n\r\n", 12);
}

static void test_until_the_end(void **state)
{
	cleanup_buf struct buf out;
	struct http1 http;
	size_t used;

	buf_init(&out, OUT_MAX);
	http1_init(&http, HTTP1_RESPONSE);
	assert_int_equal(http1_finish(&http, &out), HTTP1_MORE);
	assert_int_equal(feed(&http, "HTTP/1.1 200 OK\r\n\r\nsome", 5, &out, &used), HTTP1_MORE);
	assert_true(http.head.closes);
	assert_int_equal(http1_finish(&http, &out), HTTP1_END);
	assert_string_equal(buf_text(&out), "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nsome");
	http1_next(&http);
	assert_int_equal(feed(&http, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsome", 50, &out, &used), HTTP1_MORE);
	assert_int_equal(http1_finish(&http, &out), HTTP1_BAD);
	http1_next(&http);
	assert_int_equal(feed(&http, "HTTP/1.1 200 OK\r\nContent", 50, &out, &used), HTTP1_MORE);
	assert_int_equal(http1_finish(&http, &out), HTTP1_BAD);
	http1_done(&http);
}

/* What makes two parsers see two messages where there is one. */
static void test_smuggling_is_refused(void **state)
{
	static const struct {
		const char *fields, *problem;
	} requests[] = {
		{ "Host: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n", NULL },
		{ "Host: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n", NULL },
		{ "Host: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n", NULL },
		{ "Host: a\r\nContent-Length: 5\r\nContent_Length: 6\r\n", "disguise" },
		{ "Host: a\r\nTransfer_Encoding: chunked\r\n", "disguise" },
		{ "Host: a\r\nContent-Length: 5, 5\r\n", NULL },
		{ "Host: a\r\nContent-Length: +5\r\n", NULL },
		{ "Host: a\r\nContent-Length: -1\r\n", NULL },
		{ "Host: a\r\nContent-Length: 0x5\r\n", NULL },
		{ "Host: a\r\nContent-Length: \r\n", NULL },
		{ "Host: a\r\nContent-Length: 18446744073709551616\r\n", NULL },
		{ "Host: a\r\nContent-Length: 5 6\r\n", NULL },
		{ "Host: a\r\nTransfer-Encoding: gzip, chunked\r\n", NULL },
		{ "Host: a\r\nTransfer-Encoding: chunked, chunked\r\n", NULL },
		{ "Host: a\r\nTransfer-Encoding: identity\r\n", NULL },
		{ "Host: a\r\nTransfer-Encoding: xchunked\r\n", NULL },
		{ "Host: a\r\nTransfer-Encoding: \x0b" "chunked\r\n", NULL },
		{ "Host: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", NULL },
		{ "Host: a\r\nTransfer-Encoding : chunked\r\n", NULL },
		{ "Host: a\r\nTransfer-Encoding\t: chunked\r\n", NULL },
		{ "Host: a\r\n Transfer-Encoding: chunked\r\n", "folded" },
		{ "Host: a\r\nX: 1\r\n\tfolded\r\n", "folded" },
		{ " Host: a\r\n", NULL },
		{ "Host: a\r\nHost: b\r\n", "exactly once" },
		{ "Host: a\r\nHost: a\r\n", "exactly once" },
		{ "Host: a\r\nhOsT: b\r\n", "exactly once" },
		{ "X: a\r\n", "exactly once" },
		{ "Host: a\r\nX: 1\nTransfer-Encoding: chunked\r\n", "LF alone" },
		{ "Host: a\r\nX: 1\rTransfer-Encoding: chunked\r\n", NULL },
		{ "Host: a\r\nX: \x01\r\n", NULL },
		{ "Host: a\r\nContent-Length: 8\r\n\rth: 8\r\n", NULL },
		{ "Host: a\r\nX\r\n", NULL },
		{ "Host: a\r\n: x\r\n", NULL },
		{ "Host: a\r\nX Y: 1\r\n", NULL },
		{ "Host: a\r\n\xff: 1\r\n", NULL },
		{ "Host: a\r\nExpect: tea\r\n", "expects" },
		{ "Host: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 4\r\n", "body" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
		cleanup_free char *text = str_printf("POST / HTTP/1.1\r\n%s\r\nrest", requests[i].fields);

		check_refused(HTTP1_REQUEST, text, requests[i].problem);
	}
	check_refused(HTTP1_REQUEST, "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", NULL);
}

static void test_malformed_requests(void **state)
{
	static const char *const bad[] = {
		"GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /  HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.2\r\nHost: a\r\n\r\n",
		"GET / HTTP/2.0\r\nHost: a\r\n\r\n",
		"GET / http/1.1\r\nHost: a\r\n\r\n",
		"GET /x y HTTP/1.1\r\nHost: a\r\n\r\n",
		"get / HTTP/1.1\r\nHost: a\r\n\r\n",
		"G\tT / HTTP/1.1\r\nHost: a\r\n\r\n",
		"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n",
		"TRACE / HTTP/1.1\r\nHost: a\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"NOSUCH / HTTP/1.1\r\nHost: a\r\n\r\n",
		" GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"\x16\x03\x01\x02 nothing\r\n\r\n",
		"GET / HTTP/1.1\nHost: a\n\n",
		"\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"HTTP/1.1 200 OK\r\nHost: a\r\n\r\n",
		"/ HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		check_refused(HTTP1_REQUEST, bad[i], NULL);
}

static void test_malformed_responses(void **state)
{
	static const char *const bad[] = {
		"HTTP/1.1 20 OK\r\n\r\n",
		"HTTP/1.1 099 OK\r\n\r\n",
		"HTTP/1.1 2000 OK\r\n\r\n",
		"HTTP/2 200 OK\r\n\r\n",
		"ICY 200 OK\r\n\r\n",
		"HTTP/1.1  200 OK\r\n\r\n",
		"garbage",
		"HTTP/1.1 200 OK\nX: y\n\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\nx",
		"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n",
		"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (strchr(bad[i], '\n'))
			check_refused(HTTP1_RESPONSE, bad[i], NULL);
}

static void test_heads_are_bounded(void **state)
{
	enum { SIZE = HTTP1_HEAD_MAX + 64 };
	cleanup_free char *large = malloc(SIZE + 1);
	struct buf many;

	memset(large, 'a', SIZE);
	large[SIZE] = 0;
	memcpy(large, "GET /", 5);
	check_refused(HTTP1_REQUEST, large, "too large");
	buf_init(&many, OUT_MAX);
	buf_put_text(&many, "GET / HTTP/1.1\r\nHost: a\r\n");
	for (size_t i = 0; i < HTTP1_FIELDS_MAX; i++)
		buf_put_text(&many, "X: y\r\n");
	buf_put_text(&many, "\r\n");
	check_refused(HTTP1_REQUEST, buf_text(&many), "too many fields");
	buf_done(&many);
}

static void test_fields_are_set_and_removed(void **state)
{
	static const char text[] = "GET / HTTP/1.1\r\nHost: a\r\nX-Key: p\r\nx_key: q\r\nAccept: z\r\n\r\n";
	cleanup_buf struct buf out;
	struct http1 http;
	size_t used;

	buf_init(&out, OUT_MAX);
	http1_init(&http, HTTP1_REQUEST);
	assert_int_equal(http1_feed(&http, (const uint8_t *)text, sizeof text - 1, &out, &used), HTTP1_HEAD);
	assert_int_equal(http1_set(&http.head, "X-KEY", "real"), 0);
	assert_int_equal(http1_set(&http.head, "X-KEY", "newer"), 0);
	assert_int_equal(http1_set(&http.head, "X-KEY", "a\r\nb: c"), -EINVAL);
	assert_int_equal(http1_set(&http.head, "X KEY", "a"), -EINVAL);
	assert_int_equal(http1_set(&http.head, "", "a"), -EINVAL);
	http1_remove(&http.head, "accept");
	http1_put_head(&http.head, &out);
	assert_string_equal(buf_text(&out), "GET / HTTP/1.1\r\nHost: a\r\nX-KEY: newer\r\n\r\n");
	assert_string_equal(http1_find(&http.head, "x-key"), "newer");
	assert_null(http1_find(&http.head, "accept"));
	http1_done(&http);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests), cmocka_unit_test(test_fields_of_one_hop_stay_behind),
		cmocka_unit_test(test_chunks_are_framed_anew), cmocka_unit_test(test_trailers),
		cmocka_unit_test(test_responses), cmocka_unit_test(test_until_the_end),
		cmocka_unit_test(test_smuggling_is_refused), cmocka_unit_test(test_malformed_requests),
		cmocka_unit_test(test_malformed_responses), cmocka_unit_test(test_heads_are_bounded),
		cmocka_unit_test(test_fields_are_set_and_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
