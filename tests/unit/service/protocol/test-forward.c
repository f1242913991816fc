/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "service/protocol/forward.h"

static void headers_of_one_connection_stay_on_it(void **state)
{
	static const char *const kept[] = { "Cookie", "Authorization", "Sec-WebSocket-Key", "Content-Type",
					    "Origin" };
	static const char *const dropped[] = {
		"connection", "TE",	   "Transfer-Encoding", "upgrade",	  "Keep-Alive",
		"X-Hop",      "X-API-KEY", "x-access-token",	"E2b-Sandbox-Id", "e2b-traffic-access-token",
		"Expect",     "Host"
	};

	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		assert_true(forward_has_request_header(kept[i], "close, x-hop"));
	for (size_t i = 0; i < ARRAY_SIZE(dropped); i++)
		assert_false(forward_has_request_header(dropped[i], "close, x-hop"));
	assert_true(forward_has_request_header("X-Hop", "x-hopper,x-ho"));
	/* What a server says is its own: a header of that name is no credential of ours. */
	assert_true(forward_has_response_header("X-API-KEY", NULL));
	assert_false(forward_has_response_header("x-hop", "X-Hop"));
}

static void an_upgrade_is_asked_for_by_both_headers(void **state)
{
	assert_true(forward_is_upgrade("keep-alive, Upgrade", "websocket"));
	assert_false(forward_is_upgrade("keep-alive", "websocket"));
	assert_false(forward_is_upgrade("upgrade", NULL));
	assert_false(forward_is_upgrade(NULL, "websocket"));
}

static void lines_cannot_be_split(void **state)
{
	cleanup_buf struct buf out;

	buf_init(&out, 1000);
	assert_false(forward_put_line(&out, "GET", "/a b"));
	assert_false(forward_put_line(&out, "GET", "/a\r\nX: y"));
	assert_false(forward_put_line(&out, "G T", "/"));
	assert_false(forward_put_header(&out, "X", "a\r\nY: b"));
	assert_false(forward_put_header(&out, "X: y", "a"));
	assert_int_equal(out.size, 0);
	assert_true(forward_put_line(&out, "PROPFIND", "/a?b"));
	assert_true(forward_put_header(&out, "X", "a\tb"));
	assert_string_equal(buf_text(&out), "PROPFIND /a?b HTTP/1.1\r\nX: a\tb\r\n");
}

static void a_host_is_masked(void **state)
{
	cleanup_buf struct buf out;

	buf_init(&out, 1000);
	forward_put_host(&out, "a:${PORT}.${PORT${PORT}", 80);
	assert_string_equal(buf_text(&out), "a:80.${PORT80");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers_of_one_connection_stay_on_it),
		cmocka_unit_test(an_upgrade_is_asked_for_by_both_headers),
		cmocka_unit_test(lines_cannot_be_split),
		cmocka_unit_test(a_host_is_masked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
