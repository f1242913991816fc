/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "egress/flow/proxy.h"

static void urls(void **state)
{
	static const struct {
		const char *url, *host, *authorization;
		uint16_t port;
	} rows[] = {
		{ "http://proxy.example:3128", "proxy.example", "", 3128 },
		{ "HTTP://proxy.example/", "proxy.example", "", 80 },
		{ "http://[::1]:8080/x", "::1", "", 8080 },
		{ "http://[2001:db8::1]", "2001:db8::1", "", 80 },
		{ "http://Aladdin:open%20sesame@10.0.0.1:1", "10.0.0.1", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", 1 },
		{ "http://a:@b@p", "p", "Basic YTpAYg==", 80 },
	};
	static const char *const wrong[] = { "https://p:1",    "socks5://p:1",  "p:1",         "http://",
					     "http://p:0",     "http://p:65536", "http://p:x", "http://[::1",
					     "http://a%0:b@p", "http://:1" };
	struct proxy proxy;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (proxy_parse(&proxy, rows[i].url, NULL) != 0)
			fail_msg("%s", rows[i].url);
		assert_string_equal(proxy.host, rows[i].host);
		assert_string_equal(proxy.authorization, rows[i].authorization);
		assert_int_equal(proxy.port, rows[i].port);
	}
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		if (proxy_parse(&proxy, wrong[i], NULL) == 0)
			fail_msg("accepted: %s", wrong[i]);
}

static void exceptions(void **state)
{
	struct proxy proxy;

	assert_int_equal(proxy_parse(&proxy, "http://p", "localhost, .corp.example,Other.example,10.0.0.1"), 0);
	assert_true(proxy_excepts(&proxy, "localhost"));
	assert_true(proxy_excepts(&proxy, "a.corp.example"));
	assert_true(proxy_excepts(&proxy, "corp.example"));
	assert_true(proxy_excepts(&proxy, "x.other.example"));
	assert_true(proxy_excepts(&proxy, "10.0.0.1"));
	assert_false(proxy_excepts(&proxy, "xcorp.example"));
	assert_false(proxy_excepts(&proxy, "example"));
	assert_int_equal(proxy_parse(&proxy, "http://p", "*"), 0);
	assert_true(proxy_excepts(&proxy, "any.example"));
	assert_int_equal(proxy_parse(&proxy, "http://p", ""), 0);
	assert_false(proxy_excepts(&proxy, "any.example"));
}

static int told, result;

static void on_told(void *context, int errnum)
{
	told++;
	result = errnum;
}

/* Over TCP, whose sockets heed SO_RCVLOWAT. */
static void connect_pair(int ends[2])
{
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t size = sizeof name;

	assert_int_equal(bind(listener, (void *)&name, sizeof name), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (void *)&name, &size), 0);
	ends[0] = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(ends[0], (void *)&name, sizeof name), 0);
	ends[1] = accept(listener, NULL, NULL);
	assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
	close(listener);
}

/* What the proxy answers; what of it is left in the socket afterwards. */
static int try_answer(const char *answer, size_t step, char *rest, size_t rest_size)
{
	static const char expected[] = "CONNECT web.test:443 HTTP/1.1\r\nHost: web.test:443\r\n"
				       "Proxy-Authorization: Basic YTpi\r\n\r\n";
	struct event_base *base = event_base_new();
	struct tunnel_target target = { "web.test", 443, on_told, NULL };
	struct tunnel *tunnel;
	struct proxy proxy;
	char request[512] = { 0 };
	int ends[2];

	told = 0;
	assert_int_equal(proxy_parse(&proxy, "http://a:b@p", NULL), 0);
	connect_pair(ends);
	assert_int_equal(tunnel_start(&tunnel, base, ends[0], &proxy, &target), 0);
	event_base_loop(base, EVLOOP_NONBLOCK);
	assert_true(read(ends[1], request, sizeof request) > 0);
	assert_string_equal(request, expected);
	for (size_t at = 0; at < strlen(answer); at += step) {
		size_t part = strlen(answer + at) < step ? strlen(answer + at) : step;

		(void)!send(ends[1], answer + at, part, MSG_NOSIGNAL);
		event_base_loop(base, EVLOOP_NONBLOCK);
	}
	if (!told) {
		close(ends[1]);
		ends[1] = -1;
		event_base_loop(base, EVLOOP_NONBLOCK);
	}
	assert_int_equal(told, 1);
	memset(rest, 0, rest_size);
	(void)!read(ends[0], rest, rest_size - 1);
	close(ends[0]);
	if (ends[1] >= 0)
		close(ends[1]);
	event_base_free(base);
	return result;
}

static void tunnels(void **state)
{
	static char large[20000];
	char rest[64];

	assert_int_equal(try_answer("HTTP/1.1 200 OK\r\nVia: x\r\n\r\nSSH-2.0-x\r\n", 1000, rest, sizeof rest), 0);
	assert_string_equal(rest, "SSH-2.0-x\r\n");
	assert_int_equal(try_answer("HTTP/1.0 200 OK\r\n\r\n", 1, rest, sizeof rest), 0);
	assert_int_equal(try_answer("HTTP/1.1 403 Forbidden\r\n\r\n", 1000, rest, sizeof rest), EACCES);
	assert_int_equal(try_answer("HTTP/1.1 407 Who\r\nContent-Length: 3\r\n\r\nwho", 5, rest, sizeof rest), EACCES);
	assert_int_equal(try_answer("SSH-2.0-x\r\n\r\n", 1000, rest, sizeof rest), EACCES);
	assert_int_equal(try_answer("HTTP/1.1 200 OK\r\n", 1000, rest, sizeof rest), ECONNRESET);
	memset(large, 'x', sizeof large - 1);
	assert_int_equal(try_answer(large, 1000, rest, sizeof rest), EMSGSIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(urls),
		cmocka_unit_test(exceptions),
		cmocka_unit_test(tunnels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
