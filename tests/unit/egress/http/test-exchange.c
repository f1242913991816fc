/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "egress/credentials/inject.h"
#include "egress/http/exchange.h"

/* One connection with both its ends in memory, to a server of which POST /v1 is allowed and gets a credential. */
struct wire {
	struct exchange exchange;
	struct buf to_server, to_client, waiting;
	enum exchange_state state;
	struct exchange_record last;
	char last_path[64], last_problem[128];
	size_t records;
};

static const struct target_server server = { "api.example.org", 443, true };
static const uint16_t ports[] = { 443 };
static const char *const paths[] = { "/v1/**", NULL };
static const struct http_rule http_rule = { .paths = paths, .origin = { "network.allow[0].http[0]" } };
static const struct net_rule net_rule = { .verdict = VERDICT_ALLOW, .host = "api.example.org", .ports = ports,
					  .port_count = 1, .http = &http_rule, .http_count = 1,
					  .inject = { .kind = INJECT_RAW, .name = "x-api-key", .secret = "s" },
					  .origin = { "network.allow[0]" } };
static const struct policy policy = { .network = { .default_verdict = VERDICT_DENY, .rules = &net_rule,
						  .count = 1, .exact_count = 1 } };
static const char secret[] = "sk-real-0123456789";
static const struct injection injection = { &net_rule, secret };

static bool on_outgoing(void *context, struct exchange_record *record, struct http1_head *head,
			const struct target *target, char **ret_owned, const char **ret_problem)
{
	return inject_request(&injection, &server, target, head, ret_owned) >= 0;
}

static void on_incoming(void *context, struct exchange_record *record, struct http1_head *head)
{
	assert_true(inject_redact(&injection, head) >= 0);
}

static void on_over(void *context, const struct exchange_record *record)
{
	struct wire *wire = context;

	wire->last = *record;
	assert_int_equal(str_copy(wire->last_path, sizeof wire->last_path, record->path), 0);
	assert_int_equal(str_copy(wire->last_problem, sizeof wire->last_problem,
				  record->problem ? record->problem : ""),
			 0);
	wire->records++;
}

static void wire_init(struct wire *wire)
{
	*wire = (struct wire){ 0 };
	exchange_init(&wire->exchange, &server, &policy,
		      &(struct exchange_hooks){ .outgoing = on_outgoing, .incoming = on_incoming, .over = on_over,
						 .context = wire });
	buf_init(&wire->to_server, 1 << 20);
	buf_init(&wire->to_client, 1 << 20);
	buf_init(&wire->waiting, 1 << 20);
}

static void wire_done(struct wire *wire)
{
	exchange_done(&wire->exchange);
	buf_done(&wire->to_server);
	buf_done(&wire->to_client);
	buf_done(&wire->waiting);
}
#define cleanup_wire __attribute__((cleanup(wire_done)))

static void push(struct wire *wire)
{
	size_t used;

	wire->state = exchange_from_client(&wire->exchange, wire->waiting.bytes, wire->waiting.size, &used,
					   &wire->to_server, &wire->to_client);
	buf_consume(&wire->waiting, used);
}

static void ask(struct wire *wire, const char *text)
{
	buf_put_text(&wire->waiting, text);
	push(wire);
}

static void answer(struct wire *wire, const char *text)
{
	wire->state = exchange_from_server(&wire->exchange, (const uint8_t *)text, strlen(text), &wire->to_client);
	if (wire->state == EXCHANGE_OPEN)
		push(wire);
}

/* What went out since the last look. */
static void assert_sent(struct buf *buf, const char *text)
{
	assert_string_equal(buf_text(buf), text);
	buf_reset(buf);
}

static void assert_refusal(struct wire *wire, const char *status, const char *text)
{
	assert_int_equal(wire->state, EXCHANGE_ENDED);
	assert_true(str_has_prefix(buf_text(&wire->to_client), status));
	if (!strstr(buf_text(&wire->to_client), text))
		fail_msg("\"%s\" is not in %s", text, buf_text(&wire->to_client));
	assert_non_null(strstr(buf_text(&wire->to_client), "Connection: close"));
	assert_sent(&wire->to_server, "");
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: api.example.org\r\n\r\n"
#define GET_OUT(path) "GET " path " HTTP/1.1\r\nHost: api.example.org\r\nx-api-key: sk-real-0123456789\r\n\r\n"
#define OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

/* ---- a person is asked ---- */

static size_t asked, forms;

static bool on_ask(void *context, struct exchange_record *record)
{
	record->asked = (uint32_t)++asked;
	forms += strcmp(record->path, "/paid") == 0;
	return true;
}

static const struct policy asking = { .network = { .default_verdict = VERDICT_ASK, .rules = &net_rule,
						  .count = 1, .exact_count = 1 } };
static const struct decision yes = { VERDICT_ALLOW, { "ask.grant[1]", "", 0 }, "a person allowed this", "", NULL };
static const struct decision no = { VERDICT_DENY, { "ask.grant[2]", "", 0 }, "a person refused this", "", NULL };

static void wire_init_asking(struct wire *wire)
{
	wire_init(wire);
	exchange_done(&wire->exchange);
	exchange_init(&wire->exchange, &server, &asking,
		      &(struct exchange_hooks){ .ask = on_ask, .over = on_over, .context = wire });
	asked = forms = 0;
}

static void answer_question(struct wire *wire, const struct decision *decision)
{
	wire->state = exchange_answered(&wire->exchange, decision, &wire->to_server, &wire->to_client);
	if (wire->state == EXCHANGE_OPEN)
		push(wire);
}

#define POST_PAID "POST /paid HTTP/1.1\r\nHost: api.example.org\r\nContent-Length: 4\r\n\r\n"

static void test_a_request_waits_with_its_body_unread(void **state)
{
	cleanup_wire struct wire wire;

	wire_init_asking(&wire);
	ask(&wire, POST_PAID "body" GET("/v1/x"));
	assert_true(exchange_is_waiting(&wire.exchange));
	assert_int_equal(asked, 1);
	assert_int_equal(wire.waiting.size, strlen("body" GET("/v1/x")));
	assert_sent(&wire.to_server, "");
	assert_sent(&wire.to_client, "");
	assert_false(exchange_is_idle(&wire.exchange));
	answer_question(&wire, &yes);
	assert_sent(&wire.to_server, POST_PAID "body");
	answer(&wire, OK);
	assert_int_equal(wire.last.asked, 1);
	assert_string_equal(wire.last_path, "/paid");
	/* And what was pipelined behind it. */
	assert_sent(&wire.to_server, GET("/v1/x"));
	answer_question(&wire, &no);
	assert_int_equal(wire.state, EXCHANGE_OPEN);
}

static void test_a_no_an_end_and_another_form(void **state)
{
	cleanup_wire struct wire refused, left, closed, other;

	wire_init_asking(&refused);
	ask(&refused, POST_PAID);
	answer_question(&refused, &no);
	assert_refusal(&refused, "HTTP/1.1 403", "a person refused this");
	wire_init_asking(&left);
	ask(&left, POST_PAID);
	assert_int_equal(exchange_client_ended(&left.exchange), EXCHANGE_ENDED);
	assert_true(left.last.is_waiting);
	wire_init_asking(&closed);
	ask(&closed, POST_PAID);
	closed.state = exchange_server_ended(&closed.exchange, &closed.to_client);
	assert_refusal(&closed, "HTTP/1.1 503", "while a person was asked");
	/* A server may read the path in two ways: a yes is for one of them. */
	wire_init_asking(&other);
	ask(&other, GET("/x/../paid"));
	answer_question(&other, &yes);
	assert_true(exchange_is_waiting(&other.exchange));
	assert_int_equal(asked, 2);
	assert_int_equal(forms, 1);
	answer_question(&other, &yes);
	assert_sent(&other.to_server, GET("/x/../paid"));
}

static void test_one_after_the_other(void **state)
{
	cleanup_wire struct wire wire;

	wire_init(&wire);
	for (size_t i = 1; i < 4; i++) {
		ask(&wire, GET("/v1/x"));
		assert_sent(&wire.to_server, GET_OUT("/v1/x"));
		answer(&wire, OK);
		assert_sent(&wire.to_client, OK);
		assert_int_equal(wire.records, i);
		assert_int_equal(wire.last.status, 200);
		assert_int_equal(wire.last.bytes_in, 2);
		assert_string_equal(wire.last_path, "/v1/x");
	}
	assert_int_equal(wire.state, EXCHANGE_OPEN);
}

/* Each request of a connection is judged by itself. */
static void test_the_second_is_refused(void **state)
{
	cleanup_wire struct wire wire;

	wire_init(&wire);
	ask(&wire, GET("/v1/x"));
	answer(&wire, OK);
	buf_reset(&wire.to_client);
	buf_reset(&wire.to_server);
	ask(&wire, GET("/v2/x"));
	assert_refusal(&wire, "HTTP/1.1 403 ", "no rule allows");
	assert_int_equal(wire.last.status, 403);
	assert_int_equal(wire.last.decision.verdict, VERDICT_DENY);
	ask(&wire, GET("/v1/x"));
	assert_sent(&wire.to_server, "");
}

static void test_pipelined_requests_wait(void **state)
{
	cleanup_wire struct wire wire;

	wire_init(&wire);
	ask(&wire, GET("/v1/a") GET("/v1/b") GET("/v2/c"));
	assert_sent(&wire.to_server, GET_OUT("/v1/a"));
	answer(&wire, OK);
	assert_sent(&wire.to_server, GET_OUT("/v1/b"));
	assert_sent(&wire.to_client, OK);
	answer(&wire, "HTTP/1.1 204 \r\n\r\n");
	assert_int_equal(wire.state, EXCHANGE_ENDED);
	assert_non_null(strstr(buf_text(&wire.to_client), "403 Forbidden"));
	assert_int_equal(wire.records, 3);
}

static void test_a_request_in_a_body_is_none(void **state)
{
	cleanup_wire struct wire wire;

	wire_init(&wire);
	ask(&wire, "POST /v1/x HTTP/1.1\r\nHost: api.example.org\r\nContent-Length: 27\r\n\r\nGET /v2 "
		   "HTTP/1.1\r\nHost: a\r\n");
	assert_non_null(strstr(buf_text(&wire.to_server), "\r\n\r\nGET /v2"));
	answer(&wire, OK);
	assert_int_equal(wire.records, 1);
	assert_int_equal(wire.last.bytes_out, 27);
}

static void test_other_hosts_are_refused(void **state)
{
	static const char *const bad[] = {
		"GET /v1/x HTTP/1.1\r\nHost: evil.example\r\n\r\n",
		"GET /v1/x HTTP/1.1\r\nHost: api.example.org:80\r\n\r\n",
		"GET https://evil.example/v1/x HTTP/1.1\r\nHost: api.example.org\r\n\r\n",
		"GET http://api.example.org/v1/x HTTP/1.1\r\nHost: api.example.org\r\n\r\n",
		"GET https://api.example.org/v1/x HTTP/1.1\r\nHost: evil.example\r\n\r\n",
		"GET /v1/x HTTP/1.1\r\nHost: api.example.org\r\nHost: evil.example\r\n\r\n",
		"GET /v1/x HTTP/1.1\r\nHost:\r\n\r\n",
		"GET /v1/x HTTP/1.1\r\n\r\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		cleanup_wire struct wire wire;

		wire_init(&wire);
		ask(&wire, bad[i]);
		assert_refusal(&wire, "HTTP/1.1 400 ", "refused by atoll");
		assert_int_equal(wire.records, 1);
		assert_true(*wire.last_problem);
	}
}

static void test_absolute_form_becomes_a_path(void **state)
{
	cleanup_wire struct wire wire;

	wire_init(&wire);
	ask(&wire, "GET https://API.example.org/v1/x?y HTTP/1.1\r\nHost: api.example.org\r\n\r\n");
	assert_sent(&wire.to_server, GET_OUT("/v1/x?y"));
}

static void test_continue(void **state)
{
	cleanup_wire struct wire wire;

	wire_init(&wire);
	ask(&wire, "POST /v1/x HTTP/1.1\r\nHost: api.example.org\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
	assert_non_null(strstr(buf_text(&wire.to_server), "Expect: 100-continue\r\n"));
	buf_reset(&wire.to_server);
	answer(&wire, "HTTP/1.1 100 Continue\r\n\r\n");
	assert_sent(&wire.to_client, "HTTP/1.1 100 Continue\r\n\r\n");
	ask(&wire, "body");
	assert_sent(&wire.to_server, "body");
	answer(&wire, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" OK);
	assert_non_null(strstr(buf_text(&wire.to_client), "103 Early Hints"));
	assert_true(str_has_suffix(buf_text(&wire.to_client), OK));
	assert_int_equal(wire.records, 1);
	ask(&wire, GET("/v1/next"));
	assert_sent(&wire.to_server, GET_OUT("/v1/next"));
}

static void test_streams_without_delay(void **state)
{
	cleanup_wire struct wire wire;

	wire_init(&wire);
	ask(&wire, GET("/v1/events"));
	answer(&wire, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n");
	buf_reset(&wire.to_client);
	answer(&wire, "7\r\ndata: ");
	assert_sent(&wire.to_client, "6\r\ndata: \r\n");
	answer(&wire, "1");
	assert_sent(&wire.to_client, "1\r\n1\r\n");
	answer(&wire, "\r\n0\r\n\r\n");
	assert_sent(&wire.to_client, "0\r\n\r\n");
	assert_int_equal(wire.last.bytes_in, 7);
}

static void test_answered_before_the_request_ends(void **state)
{
	cleanup_wire struct wire wire;

	wire_init(&wire);
	ask(&wire, "POST /v1/x HTTP/1.1\r\nHost: api.example.org\r\nContent-Length: 100\r\n\r\nGET /v2 HTTP/1.1");
	buf_reset(&wire.to_server);
	answer(&wire, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
	assert_int_equal(wire.state, EXCHANGE_OPEN);
	assert_int_equal(wire.records, 0);
	/* The rest of the body is no request; what comes behind it is one. */
	for (size_t i = 0; i < 84; i++)
		ask(&wire, "x");
	assert_int_equal(wire.to_server.size, 84);
	assert_int_equal(wire.records, 1);
	assert_int_equal(wire.last.status, 413);
	assert_int_equal(wire.last.bytes_out, 100);
	buf_reset(&wire.to_server);
	ask(&wire, GET("/v1/x"));
	assert_sent(&wire.to_server, GET_OUT("/v1/x"));
	wire_done(&wire);
	wire_init(&wire);
	ask(&wire, "POST /v1/x HTTP/1.1\r\nHost: api.example.org\r\nContent-Length: 100\r\n\r\n");
	answer(&wire, OK OK);
	assert_int_equal(wire.state, EXCHANGE_ENDED);
	wire_done(&wire);
	wire_init(&wire);
	ask(&wire, "POST /v1/x HTTP/1.1\r\nHost: api.example.org\r\nContent-Length: 2\r\n\r\n");
	answer(&wire, "HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
	assert_int_equal(exchange_server_ended(&wire.exchange, &wire.to_client), EXCHANGE_OPEN);
	ask(&wire, "x");
	assert_int_equal(wire.state, EXCHANGE_OPEN);
	ask(&wire, "x" GET("/v1/x"));
	assert_int_equal(wire.state, EXCHANGE_ENDED);
	assert_int_equal(wire.records, 1);
}

static void test_websocket(void **state)
{
	cleanup_wire struct wire wire;

	wire_init(&wire);
	ask(&wire, "GET /v1/ws HTTP/1.1\r\nHost: api.example.org\r\nConnection: keep-alive, "
		   "Upgrade\r\nUpgrade: WebSocket\r\n"
		   "Sec-WebSocket-Key: x\r\n\r\n\x81\x01");
	assert_true(str_has_suffix(buf_text(&wire.to_server), "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"));
	buf_reset(&wire.to_server);
	answer(&wire, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
		      "Sec-WebSocket-Accept: y\r\n\r\n\x81\x02hi");
	assert_true(str_has_suffix(buf_text(&wire.to_client), "\r\n\r\n\x81\x02hi"));
	assert_sent(&wire.to_server, "\x81\x01");
	ask(&wire, "GET /v2/not-http HTTP/1.1\r\n\r\n");
	assert_sent(&wire.to_server, "GET /v2/not-http HTTP/1.1\r\n\r\n");
	assert_int_equal(wire.state, EXCHANGE_OPEN);
	assert_int_equal(exchange_client_ended(&wire.exchange), EXCHANGE_ENDED);
	assert_int_equal(wire.last.status, 101);
}

/* While a switch is asked for nothing is taken for a request, and nothing for the other protocol either. */
static void test_websocket_that_is_not_granted(void **state)
{
	cleanup_wire struct wire wire;

	wire_init(&wire);
	ask(&wire, "GET /v1/ws HTTP/1.1\r\nHost: api.example.org\r\nConnection: Upgrade\r\nUpgrade: "
		   "websocket\r\n\r\n" GET("/v2/x"));
	buf_reset(&wire.to_server);
	answer(&wire, OK);
	assert_int_equal(wire.state, EXCHANGE_ENDED);
	assert_non_null(strstr(buf_text(&wire.to_client), "403 Forbidden"));
	assert_sent(&wire.to_server, "");
}

static void test_answers_that_nobody_asked_for(void **state)
{
	cleanup_wire struct wire wire;

	wire_init(&wire);
	answer(&wire, OK);
	assert_int_equal(wire.state, EXCHANGE_ENDED);
	assert_sent(&wire.to_client, "");
	wire_done(&wire);
	wire_init(&wire);
	ask(&wire, GET("/v1/x"));
	answer(&wire, OK OK);
	assert_sent(&wire.to_client, OK);
	assert_int_equal(wire.state, EXCHANGE_ENDED);
}

static void test_malformed_answers(void **state)
{
	cleanup_wire struct wire wire;

	wire_init(&wire);
	ask(&wire, GET("/v1/x"));
	buf_reset(&wire.to_server);
	answer(&wire, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n");
	assert_refusal(&wire, "HTTP/1.1 502 ", "refused by atoll");
}

static void test_ends(void **state)
{
	cleanup_wire struct wire wire;

	wire_init(&wire);
	assert_int_equal(exchange_client_ended(&wire.exchange), EXCHANGE_ENDED);
	assert_int_equal(wire.records, 0);
	wire_done(&wire);
	/* Half closed: the answer comes all the same. */
	wire_init(&wire);
	ask(&wire, GET("/v1/x"));
	assert_int_equal(exchange_client_ended(&wire.exchange), EXCHANGE_OPEN);
	answer(&wire, OK);
	assert_sent(&wire.to_client, OK);
	assert_int_equal(wire.state, EXCHANGE_ENDED);
	wire_done(&wire);
	wire_init(&wire);
	ask(&wire, GET("/v1/x"));
	assert_int_equal(exchange_server_ended(&wire.exchange, &wire.to_client), EXCHANGE_ENDED);
	assert_non_null(strstr(buf_text(&wire.to_client), "502 Bad Gateway"));
	wire_done(&wire);
	wire_init(&wire);
	ask(&wire, GET("/v1/x"));
	answer(&wire, "HTTP/1.0 200 OK\r\n\r\nall");
	assert_int_equal(exchange_server_ended(&wire.exchange, &wire.to_client), EXCHANGE_ENDED);
	assert_string_equal(wire.last_problem, "");
	assert_int_equal(wire.last.bytes_in, 3);
	wire_done(&wire);
	wire_init(&wire);
	ask(&wire, "POST /v1/x HTTP/1.1\r\nHost: api.example.org\r\nContent-Length: 9\r\n\r\nx");
	assert_int_equal(exchange_client_ended(&wire.exchange), EXCHANGE_ENDED);
	assert_string_equal(wire.last_problem, "the request ends in the middle");
}

/* Else whoever resets the connection behind a request would not be found in the log. */
static void test_what_breaks_off_is_told(void **state)
{
	cleanup_wire struct wire wire;

	wire_init(&wire);
	ask(&wire, "POST /v1/x HTTP/1.1\r\nHost: api.example.org\r\nContent-Length: 4\r\n\r\nab");
	exchange_done(&wire.exchange);
	assert_int_equal(wire.records, 1);
	assert_string_equal(wire.last_problem, "the connection broke off");
	assert_int_equal(wire.last.bytes_out, 2);
	exchange_done(&wire.exchange);
	assert_int_equal(wire.records, 1);
	wire_done(&wire);
	wire_init(&wire);
	ask(&wire, GET("/v1/x"));
	answer(&wire, OK);
	exchange_done(&wire.exchange);
	assert_int_equal(wire.records, 1);
}

/* Each head has a number of its own while it is on its way, so that one which never ends can be given up. */
static void test_heads_that_take_too_long(void **state)
{
	cleanup_wire struct wire wire;
	uint64_t first;

	wire_init(&wire);
	assert_int_equal(exchange_head_on_its_way(&wire.exchange), 0);
	ask(&wire, "GET /v1/x HTTP/1.1\r\nHo");
	first = exchange_head_on_its_way(&wire.exchange);
	assert_true(first > 0);
	ask(&wire, "st: api.example.org\r\n\r\nGET /v1/y HTT");
	assert_int_equal(exchange_head_on_its_way(&wire.exchange), 0);
	answer(&wire, "HTTP/1.1 200 O");
	assert_true(exchange_head_on_its_way(&wire.exchange) > first);
	answer(&wire, "K\r\nContent-Length: 2\r\n\r\nok");
	buf_reset(&wire.to_client);
	buf_reset(&wire.to_server);
	/* Now the second request's, of which only a part has come. */
	assert_true(exchange_head_on_its_way(&wire.exchange) > first + 1);
	wire.state = exchange_time_out(&wire.exchange, &wire.to_client);
	assert_refusal(&wire, "HTTP/1.1 408 ", "takes too long");
	wire_done(&wire);
	wire_init(&wire);
	ask(&wire, GET("/v1/x"));
	answer(&wire, "HTTP/1.1 200 O");
	buf_reset(&wire.to_server);
	wire.state = exchange_time_out(&wire.exchange, &wire.to_client);
	assert_refusal(&wire, "HTTP/1.1 504 ", "takes too long");
	assert_int_equal(wire.last.status, 504);
}

/* Clients of other protocols would wait for ever: what they begin with has no empty line. */
static void test_other_protocols_are_told_at_once(void **state)
{
	static const char *const beginnings[] = { "SSH-2.0-OpenSSH_9.2\r\n", "EHLO me\r\n", "PRI * HTTP/2.0\r\n",
						  "GET /v1/x\r\n", "GET /v1/x HTTP/3.0\r\n" };

	for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++) {
		cleanup_wire struct wire wire;

		wire_init(&wire);
		ask(&wire, beginnings[i]);
		assert_refusal(&wire, "HTTP/1.1 400 ", "does not begin like HTTP/1");
	}
}

/* A placeholder goes, however it is spelt; an answer that repeats the credential is cleaned. */
static void test_the_credential(void **state)
{
	cleanup_wire struct wire wire;

	wire_init(&wire);
	ask(&wire, "GET /v1/x HTTP/1.1\r\nX_API_KEY: a\r\nHost: api.example.org\r\nX-Api-Key: placeholder\r\n\r\n");
	assert_sent(&wire.to_server, GET_OUT("/v1/x"));
	answer(&wire, "HTTP/1.1 302 sk-real-0123456789\r\nLocation: https://evil.example/?k=sk-real-0123456789\r\n"
		      "Content-Length: 0\r\n\r\n");
	assert_null(strstr(buf_text(&wire.to_client), secret));
	assert_non_null(strstr(buf_text(&wire.to_client), "Location: [redacted by atoll]\r\n"));
}

/* Interim answers and trailers come in as well, and so do names of fields. */
static void test_the_credential_in_what_is_no_head(void **state)
{
	cleanup_wire struct wire wire;

	wire_init(&wire);
	ask(&wire, GET("/v1/x"));
	answer(&wire, "HTTP/1.1 103 Early Hints\r\nLink: </?k=sk-real-0123456789>\r\nB: fine\r\n\r\n");
	assert_sent(&wire.to_client, "HTTP/1.1 103 Early Hints\r\nLink: [redacted by atoll]\r\nB: fine\r\n\r\n");
	answer(&wire, "HTTP/1.1 200 OK\r\nX-SK-real-0123456789: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
		      "Sum: sk-real-0123456789\r\nOther: fine\r\n\r\n");
	assert_sent(&wire.to_client, "HTTP/1.1 200 OK\r\nredacted-by-atoll: [redacted by atoll]\r\n"
				     "Transfer-Encoding: chunked\r\n\r\n0\r\n"
				     "Sum: [redacted by atoll]\r\nOther: fine\r\n\r\n");
}

/* They go out unread otherwise. */
static void test_trailers_of_a_request_stay(void **state)
{
	cleanup_wire struct wire wire;

	wire_init(&wire);
	ask(&wire, "POST /v1/x HTTP/1.1\r\nHost: api.example.org\r\nTransfer-Encoding: chunked\r\n\r\n"
		   "1\r\na\r\n0\r\nSum: b\r\n\r\n");
	assert_true(str_has_suffix(buf_text(&wire.to_server), "\r\n\r\n1\r\na\r\n0\r\n\r\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_after_the_other),
		cmocka_unit_test(test_a_request_waits_with_its_body_unread),
		cmocka_unit_test(test_a_no_an_end_and_another_form), cmocka_unit_test(test_the_second_is_refused),
		cmocka_unit_test(test_pipelined_requests_wait), cmocka_unit_test(test_a_request_in_a_body_is_none),
		cmocka_unit_test(test_other_hosts_are_refused), cmocka_unit_test(test_absolute_form_becomes_a_path),
		cmocka_unit_test(test_continue), cmocka_unit_test(test_streams_without_delay),
		cmocka_unit_test(test_answered_before_the_request_ends), cmocka_unit_test(test_websocket),
		cmocka_unit_test(test_websocket_that_is_not_granted),
		cmocka_unit_test(test_answers_that_nobody_asked_for), cmocka_unit_test(test_malformed_answers),
		cmocka_unit_test(test_what_breaks_off_is_told),
		cmocka_unit_test(test_heads_that_take_too_long),
		cmocka_unit_test(test_other_protocols_are_told_at_once),
		cmocka_unit_test(test_ends), cmocka_unit_test(test_the_credential),
		cmocka_unit_test(test_the_credential_in_what_is_no_head),
		cmocka_unit_test(test_trailers_of_a_request_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
