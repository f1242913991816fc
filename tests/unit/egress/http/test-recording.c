/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "egress/http/exchange.h"
#include "egress/record/record.h"
#include "egress/record/redact.h"
#include "egress/record/replay.h"
#include "os/fd.h"

/* Connections with both their ends in memory, recorded to a file in memory and answered from it. */
struct wire {
	struct recording *recording;
	struct exchange exchange;
	struct buf to_server, to_client, waiting;
	enum exchange_state state;
	struct exchange_record last;
	char reason[128];
	size_t records;
};

static const struct target_server server = { "api.example.org", 443, true };
static const char *const teapot_paths[] = { "/tea", NULL };
static const struct http_rule teapot_http = { .paths = teapot_paths };
static const char *const teapot_fields[] = { "content-type", "text/plain", NULL };
static const struct net_answer teapot = { 418, teapot_fields, "short and stout", 15, NULL };
static const struct net_rule rules[] = {
	{ .verdict = VERDICT_ALLOW, .host = "api.example.org", .origin = { "network.allow[0]" } },
	{ .verdict = VERDICT_SIMULATE, .host = "api.example.org", .http = &teapot_http, .http_count = 1,
	  .answer = &teapot, .origin = { "network.simulate[0]" } },
};
static const struct policy policy = { .network.mode = NETWORK_GATE, .network.rules = rules, .network.count = 2,
				      .network.exact_count = 2 };
static int file = FD_NONE;

static void on_over(void *context, const struct exchange_record *record)
{
	struct wire *wire = context;

	wire->last = *record;
	assert_int_equal(str_copy(wire->reason, sizeof wire->reason,
				  record->decision.reason ? record->decision.reason : ""), 0);
	wire->records++;
}

static void wire_connect(struct wire *wire)
{
	struct exchange_hooks hooks = { .over = on_over, .context = wire, .recording = wire->recording };

	exchange_init(&wire->exchange, &server, &policy, &hooks);
	if (recording_answers(wire->recording))
		wire->exchange.unreachable = "no server is asked";
	buf_init(&wire->to_server, 32 << 20);
	buf_init(&wire->to_client, 32 << 20);
	buf_init(&wire->waiting, 32 << 20);
}

static void wire_disconnect(struct wire *wire)
{
	exchange_done(&wire->exchange);
	buf_done(&wire->to_server);
	buf_done(&wire->to_client);
	buf_done(&wire->waiting);
}

static void wire_done(struct wire *wire)
{
	wire_disconnect(wire);
	recording_free(wire->recording);
}
#define cleanup_wire __attribute__((cleanup(wire_done)))

static void start_recording(struct wire *wire)
{
	struct err err;

	close_fd(&file);
	file = memfd_create("recording", 0);
	*wire = (struct wire){ 0 };
	assert_int_equal(recording_write(&wire->recording, dup(file), &err), 0);
	wire_connect(wire);
}

static int try_replay(struct wire *wire, struct err *err)
{
	*wire = (struct wire){ 0 };
	assert_int_equal(lseek(file, 0, SEEK_SET), 0);
	return recording_read(&wire->recording, dup(file), err);
}

static void start_replay(struct wire *wire)
{
	struct err err = { 0 };

	if (try_replay(wire, &err) < 0)
		fail_msg("%s", err.message);
	wire_connect(wire);
}

static void push(struct wire *wire)
{
	size_t used;

	do {
		wire->state = exchange_from_client(&wire->exchange, wire->waiting.bytes, wire->waiting.size, &used,
						   &wire->to_server, &wire->to_client);
		buf_consume(&wire->waiting, used);
		while (exchange_is_giving(&wire->exchange) && wire->state == EXCHANGE_OPEN)
			wire->state = exchange_take(&wire->exchange, &wire->to_client, wire->to_client.size + 1000);
	} while (used && wire->waiting.size && wire->state == EXCHANGE_OPEN);
}

static void ask(struct wire *wire, const char *text)
{
	buf_put_text(&wire->waiting, text);
	push(wire);
}

static void answer(struct wire *wire, const char *text)
{
	wire->state = exchange_from_server(&wire->exchange, (const uint8_t *)text, strlen(text), &wire->to_client);
}

static void converse(struct wire *wire, const char *question, const char *told)
{
	ask(wire, question);
	answer(wire, told);
}

static void assert_told(struct wire *wire, const char *text)
{
	assert_string_equal(buf_text(&wire->to_client), text);
	buf_reset(&wire->to_client);
	assert_int_equal(wire->to_server.size, 0);
}

static char *read_file(void)
{
	char *bytes;
	size_t size = (size_t)lseek(file, 0, SEEK_END);

	bytes = calloc(1, size + 1);
	assert_int_equal(pread(file, bytes, size, 0), size);
	return bytes;
}

#define ASK(method, path, more) method " " path " HTTP/1.1\r\nHost: api.example.org\r\n" more "\r\n"
#define GET(path) ASK("GET", path, "")
#define POST(path, body) ASK("POST", path, "Content-Length: 1\r\n") body
/* As they are passed on, and given again: framing last. */
#define OK(body) "HTTP/1.1 200 OK\r\nx-a: b\r\nContent-Length: 1\r\n\r\n" body

static void test_answers_come_again_in_order(void **state)
{
	cleanup_wire struct wire wire;

	start_recording(&wire);
	converse(&wire, GET("/a"), OK("1"));
	converse(&wire, GET("/b"), OK("2"));
	converse(&wire, GET("/a"), OK("3"));
	converse(&wire, GET("/a?x"), OK("4"));
	wire_done(&wire);

	start_replay(&wire);
	ask(&wire, GET("/b"));
	assert_told(&wire, OK("2"));
	assert_true(wire.last.is_replayed);
	assert_int_equal(wire.last.decision.verdict, VERDICT_ALLOW);
	assert_int_equal(wire.last.bytes_in, 1);
	/* Pipelined; and the last one again. */
	ask(&wire, GET("/a") GET("/a") GET("/a"));
	assert_told(&wire, OK("1") OK("3") OK("3"));
	ask(&wire, GET("/a?x"));
	assert_told(&wire, OK("4"));
	assert_int_equal(wire.records, 5);
}

static void test_what_is_not_there_is_refused(void **state)
{
	static const char *const other[] = { GET("/b"), GET("/a?y"), ASK("DELETE", "/a", ""), GET("/A") };
	cleanup_wire struct wire wire;

	start_recording(&wire);
	converse(&wire, GET("/a"), OK("1"));
	wire_done(&wire);

	start_replay(&wire);
	for (size_t i = 0; i < ARRAY_SIZE(other); i++) {
		wire_disconnect(&wire);
		wire_connect(&wire);
		ask(&wire, other[i]);
		assert_int_equal(wire.state, EXCHANGE_ENDED);
		assert_true(str_has_prefix(buf_text(&wire.to_client), "HTTP/1.1 403 Forbidden\r\n"));
		assert_non_null(strstr(buf_text(&wire.to_client), "the recording has no such request"));
		assert_int_equal(wire.to_server.size, 0);
		assert_int_equal(wire.last.decision.verdict, VERDICT_DENY);
		assert_string_equal(wire.last.decision.rule.id, "builtin.replay");
	}
}

/* Two at one time come back in any order: the body tells them apart. */
static void test_bodies_tell_requests_apart(void **state)
{
	cleanup_wire struct wire wire;

	start_recording(&wire);
	converse(&wire, POST("/m", "a"), OK("1"));
	converse(&wire, POST("/m", "b"), OK("2"));
	converse(&wire, POST("/m", "b"), OK("3"));
	wire_done(&wire);

	start_replay(&wire);
	ask(&wire, POST("/m", "b"));
	assert_told(&wire, OK("2"));
	ask(&wire, POST("/m", "a") POST("/m", "a"));
	assert_told(&wire, OK("1") OK("1"));
	ask(&wire, POST("/m", "b") POST("/m", "b"));
	assert_told(&wire, OK("3") OK("3"));
	/* Another body than all: in order, and all are used up. */
	ask(&wire, POST("/m", "c"));
	assert_told(&wire, OK("3"));
}

static void test_framing_is_what_it_was(void **state)
{
	static const char events[] = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nTransfer-Encoding: "
				     "chunked\r\n\r\n7\r\ndata: 1\r\n",
			  rest[] = "3\r\n\n\n\0\r\n0\r\n\r\n";
	cleanup_wire struct wire wire;

	start_recording(&wire);
	ask(&wire, GET("/events"));
	answer(&wire, events);
	wire.state = exchange_from_server(&wire.exchange, (const uint8_t *)rest, sizeof rest - 1, &wire.to_client);
	converse(&wire, ASK("HEAD", "/events", ""), "HTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\n");
	converse(&wire, GET("/gone"), "HTTP/1.1 204 No Content\r\n\r\n");
	wire_done(&wire);

	start_replay(&wire);
	ask(&wire, GET("/events"));
	assert_memory_equal(wire.to_client.bytes + wire.to_client.size - 20, "a\r\ndata: 1\n\n\0\r\n0\r\n\r\n", 20);
	assert_non_null(strstr(buf_text(&wire.to_client), "Transfer-Encoding: chunked\r\n"));
	buf_reset(&wire.to_client);
	ask(&wire, ASK("HEAD", "/events", ""));
	assert_told(&wire, "HTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\n");
	ask(&wire, GET("/gone"));
	assert_told(&wire, "HTTP/1.1 204 No Content\r\n\r\n");
	assert_int_equal(wire.state, EXCHANGE_OPEN);
}

static void test_an_answer_that_breaks_off_does_again(void **state)
{
	cleanup_wire struct wire wire;

	start_recording(&wire);
	converse(&wire, GET("/cut"), "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
	assert_int_equal(exchange_server_ended(&wire.exchange, &wire.to_client), EXCHANGE_ENDED);
	wire_disconnect(&wire);
	wire_connect(&wire);
	ask(&wire, GET("/none"));
	assert_int_equal(exchange_server_ended(&wire.exchange, &wire.to_client), EXCHANGE_ENDED);
	wire_done(&wire);

	start_replay(&wire);
	ask(&wire, GET("/cut"));
	assert_int_equal(wire.state, EXCHANGE_ENDED);
	assert_true(str_has_suffix(buf_text(&wire.to_client), "\r\n\r\nhalf"));
	assert_non_null(strstr(buf_text(&wire.to_client), "Content-Length: 5\r\n"));
	wire_disconnect(&wire);
	wire_connect(&wire);
	ask(&wire, GET("/none"));
	assert_non_null(strstr(buf_text(&wire.to_client), "gave no answer"));
}

static void test_a_rule_answers(void **state)
{
	cleanup_wire struct wire wire;

	start_recording(&wire);
	ask(&wire, ASK("POST", "/tea", "Expect: 100-continue\r\nContent-Length: 3\r\n"));
	assert_told(&wire, "HTTP/1.1 100 Continue\r\n\r\n");
	ask(&wire, "cup" ASK("HEAD", "/tea", ""));
	assert_told(&wire, "HTTP/1.1 418 \r\ncontent-type: text/plain\r\nContent-Length: 15\r\n\r\n"
			   "short and stout"
			   "HTTP/1.1 418 \r\ncontent-type: text/plain\r\n\r\n");
	assert_int_equal(wire.records, 2);
	assert_int_equal(wire.last.decision.verdict, VERDICT_SIMULATE);
	assert_false(wire.last.is_replayed);
	/* Others go out as before, on the same connection. */
	ask(&wire, GET("/v1"));
	assert_string_equal(buf_text(&wire.to_server), GET("/v1"));
	wire_done(&wire);
	start_replay(&wire);
	ask(&wire, GET("/tea"));
	assert_non_null(strstr(buf_text(&wire.to_client), "short and stout"));
}

static void test_no_credential_is_kept(void **state)
{
	static const char question[] = ASK("GET", "/x?api%5fkey=SECRET&a=b&access_token=SECRET",
					   "Authorization: Bearer SECRET\r\nCookie: SECRET\r\nX-Api-Key: SECRET\r\n"
					   "X-Vault-Token: SECRET\r\nAccept: keep\r\n");
	static const char told[] = "HTTP/1.1 200 OK\r\nSet-Cookie: session=SECRET; Path=/\r\nContent-Length: 0\r\n\r\n";
	cleanup_wire struct wire wire;
	char *text;

	start_recording(&wire);
	converse(&wire, question, told);
	wire_done(&wire);
	text = read_file();
	assert_null(strstr(text, "SECRET"));
	assert_non_null(strstr(text, "keep"));
	assert_non_null(strstr(text, "\"session=redacted-by-atoll; Path=/\""));
	assert_non_null(strstr(text, "\"/x?api%5fkey=redacted-by-atoll&a=b&access_token=redacted-by-atoll\""));
	free(text);
	/* With another key of the same name it is the same request. */
	start_replay(&wire);
	ask(&wire, GET("/x?api%5fkey=other&a=b&access_token=other"));
	assert_true(str_has_prefix(buf_text(&wire.to_client), "HTTP/1.1 200 OK\r\n"));
}

/* Known texts become stars of the same length, also in encodings; hashes and sizes are of what was there. */
static void test_known_texts_are_hidden(void **state)
{
	static const char known[] = "vaulted-value-1";
	cleanup_wire struct wire wire;
	struct scanner *scanner;
	char *text;

	assert_int_equal(scanner_new(&scanner), 0);
	assert_int_equal(scanner_add(scanner, 0, known, strlen(known)), 0);
	assert_int_equal(scanner_add(scanner, 16, "other-word-2", 12), 0);
	assert_int_equal(scanner_finish(scanner), 0);
	start_recording(&wire);
	recording_hide(wire.recording, &(struct record_hidden){ scanner, 1 });
	converse(&wire, ASK("POST", "/x?q=vaulted-value-1", "X-Note: vaulted-value-1\r\nContent-Length: 36\r\n")
		 "other-word-2 dmF1bHRlZC12YWx1ZS0x ok",
		 "HTTP/1.1 200 OK\r\nX-Echo: <vaulted-value-1>\r\nContent-Length: 17\r\n\r\n(vaulted-value-1)");
	wire_done(&wire);
	scanner_free(scanner);
	text = read_file();
	assert_null(strstr(text, known));
	assert_null(strstr(text, "dmF1bHRlZC12YWx1ZS0x"));
	assert_non_null(strstr(text, "\"/x?q=***************\""));
	assert_non_null(strstr(text, "\"<***************>\""));
	assert_non_null(strstr(text, "\"(***************)\""));
	assert_non_null(strstr(text, "other-word-2"));
	free(text);
	start_replay(&wire);
	ask(&wire, ASK("POST", "/x?q=***************", "Content-Length: 0\r\n"));
	assert_true(str_has_suffix(buf_text(&wire.to_client), "(***************)"));
}

/* The scanner knows the beginning of a long one: what follows it is hidden too, to the end of what it stands in. */
static void test_a_long_text_is_hidden_as_a_whole(void **state)
{
	static char known[3 * SCAN_WORD_MAX + 1], told[4 * SCAN_WORD_MAX];
	cleanup_wire struct wire wire;
	struct scanner *scanner;
	char *text;

	for (size_t i = 0; i + 1 < sizeof known; i++)
		known[i] = (char)('a' + i * i % 23);
	assert_int_equal(scanner_new(&scanner), 0);
	assert_int_equal(scanner_add(scanner, 0, known, strlen(known)), 0);
	assert_int_equal(scanner_finish(scanner), 0);
	start_recording(&wire);
	recording_hide(wire.recording, &(struct record_hidden){ scanner, 1, 1 });
	assert_int_equal(str_format(told, sizeof told,
				    "HTTP/1.1 200 OK\r\nX-Note: kept\r\nContent-Length: %zu\r\n\r\n(%s)",
				    strlen(known) + 2, known), 0);
	converse(&wire, GET("/x"), told);
	wire_done(&wire);
	scanner_free(scanner);
	text = read_file();
	assert_non_null(strstr(text, "kept"));
	for (size_t at = 0; at + 16 < sizeof known; at += 16) {
		char piece[17] = "";

		memcpy(piece, known + at, 16);
		assert_null(strstr(text, piece));
	}
	free(text);
	start_replay(&wire);
}

static void test_large_bodies(void **state)
{
	static char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 8388609\r\n\r\n", piece[64 << 10];
	cleanup_wire struct wire wire;
	char *text;

	memset(piece, 'x', sizeof piece);
	start_recording(&wire);
	converse(&wire, GET("/large"), head);
	for (size_t sent = 0; sent < RECORD_BODY_MAX; sent += sizeof piece) {
		wire.state = exchange_from_server(&wire.exchange, (uint8_t *)piece, sizeof piece, &wire.to_client);
		buf_reset(&wire.to_client);
	}
	answer(&wire, "x");
	/* What was not kept leaves room for others. */
	converse(&wire, GET("/small"), OK("1"));
	wire_done(&wire);
	text = read_file();
	assert_non_null(strstr(text, "\"body_bytes\":8388609,"));
	assert_true(strlen(text) < 4096);
	free(text);
	start_replay(&wire);
	ask(&wire, GET("/small"));
	assert_told(&wire, OK("1"));
	ask(&wire, GET("/large"));
	assert_non_null(strstr(buf_text(&wire.to_client), "too large to be recorded"));
}

#define START "{\"atoll\":\"recording\",\"v\":1}\n"
#define HASH "\"body_bytes\":0,\"body_sha256\":\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\""
#define REQUEST "\"request\":{\"method\":\"GET\",\"host\":\"api.example.org\",\"port\":443,\"target\":\"/\",\"http\":" \
		"\"1.1\",\"headers\":[]," HASH ",\"body\":\"\"}"
#define ANSWER(status, headers, body) "\"answer\":{\"status\":" status ",\"reason\":\"\",\"headers\":" headers \
				      ",\"trailers\":[],\"body\":" body ",\"framing\":\"none\",\"closes\":" \
				      "false,\"whole\":true}"
#define LINE(answer) "{" REQUEST "," answer "}\n"

static void write_recording(const char *text)
{
	close_fd(&file);
	file = memfd_create("recording", 0);
	assert_int_equal(fd_write_full(file, text, strlen(text)), 0);
}

static void test_malformed_recordings(void **state)
{
	static const char *const bad[] = {
		"", "\n", "{}\n", "[]\n", "{\"atoll\":\"recording\",\"v\":2}\n", "{\"atoll\":\"recording\"}\n",
		START "x\n", START "{}\n", START "{" REQUEST "}\n", START LINE("\"answer\":7"),
		START LINE(ANSWER("99", "[]", "\"\"")), START LINE(ANSWER("600", "[]", "\"\"")),
		START LINE(ANSWER("\"200\"", "[]", "\"\"")), START LINE(ANSWER("200", "[[\"a\"]]", "\"\"")),
		START LINE(ANSWER("200", "[[\"a\",\"b\\r\\nc: d\"]]", "\"\"")),
		START LINE(ANSWER("200", "[[\"a\",\"b\\u0000\"]]", "\"\"")),
		START LINE(ANSWER("200", "[[\"a b\",\"c\"]]", "\"\"")), START LINE(ANSWER("200", "{}", "\"\"")),
		START LINE(ANSWER("200", "[]", "7")), START LINE(ANSWER("200", "[]", "{\"b64\":\"*\"}")),
		START LINE(ANSWER("200", "[]", "{}")),
		START LINE("\"answer\":{\"status\":200,\"reason\":\"\",\"headers\":[],\"trailers\":[],\"body\":\"\","
			   "\"framing\":\"x\",\"closes\":false,\"whole\":true}"),
		START LINE(ANSWER("200", "[]", "\"\"")) "x\n",
	};
	struct err err;
	struct wire wire;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		write_recording(bad[i]);
		if (try_replay(&wire, &err) == 0)
			fail_msg("accepted: %s", bad[i]);
		assert_non_null(strstr(err.message, "(line "));
	}
}

static void test_recordings_by_hand(void **state)
{
	cleanup_wire struct wire wire;

	/* The last line is not whole: whoever wrote it was killed. */
	write_recording(START LINE(ANSWER("200", "[[\"X-A\",\"b\"],[\"Connection\",\"close\"]]", "{\"b64\":\"AP8=\"}"))
			"{\"request\":");
	start_replay(&wire);
	ask(&wire, GET("/"));
	assert_memory_equal(wire.to_client.bytes, "HTTP/1.1 200 OK\r\nX-A: b\r\nTransfer-Encoding: chunked\r\n\r\n"
						  "2\r\n\0\377\r\n0\r\n\r\n", wire.to_client.size);
	assert_int_equal(wire.state, EXCHANGE_OPEN);
}

static void test_a_full_disk_ends_it(void **state)
{
	struct wire wire;
	struct err err;

	assert_int_equal(recording_write(&wire.recording, open("/dev/full", O_WRONLY | O_CLOEXEC), &err), -ENOSPC);
	assert_non_null(strstr(err.message, "ENOSPC"));
}

static void test_names_of_credentials(void **state)
{
	static const char *const secret[] = { "Authorization", "COOKIE", "x_api_key", "X-Amz-Security-Token",
					      "Private-Token", "x-goog-api-key", "Set-Cookie" };
	static const char *const open[] = { "Accept", "X-Tokens", "Content-Type", "ETag", "x-request-id", "Tokenizer" };

	for (size_t i = 0; i < ARRAY_SIZE(secret); i++)
		assert_true(redact_is_secret_field(secret[i]));
	for (size_t i = 0; i < ARRAY_SIZE(open); i++)
		assert_false(redact_is_secret_field(open[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers_come_again_in_order),
		cmocka_unit_test(test_what_is_not_there_is_refused),
		cmocka_unit_test(test_bodies_tell_requests_apart),
		cmocka_unit_test(test_framing_is_what_it_was),
		cmocka_unit_test(test_an_answer_that_breaks_off_does_again),
		cmocka_unit_test(test_a_rule_answers),
		cmocka_unit_test(test_no_credential_is_kept),
		cmocka_unit_test(test_known_texts_are_hidden),
		cmocka_unit_test(test_a_long_text_is_hidden_as_a_whole),
		cmocka_unit_test(test_large_bodies),
		cmocka_unit_test(test_malformed_recordings),
		cmocka_unit_test(test_recordings_by_hand),
		cmocka_unit_test(test_a_full_disk_ends_it),
		cmocka_unit_test(test_names_of_credentials),
	};

	return cmocka_run_group_tests_name("egress-recording", tests, NULL, NULL);
}
