/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An intercepted connection from arbitrary bytes on both sides, split anywhere (first byte: the size of the
 * pieces; a line "\n--\n" parts client from server, in turn). What goes out to the server is read again by
 * itself: it must be whole requests to the right host below the path that is allowed, each with the
 * credential exactly once, and nothing else.
 */

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "egress/credentials/inject.h"
#include "egress/http/exchange.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const struct target_server server = { "a.example", 443, true };
static const uint16_t ports[] = { 443 };
static const char *const paths[] = { "/v1/**", NULL };
static const struct http_rule http_rule = { .paths = paths, .origin = { "h" } };
static const struct net_rule net_rule = { .verdict = VERDICT_ALLOW,
					  .host = "a.example",
					  .ports = ports,
					  .port_count = 1,
					  .http = &http_rule,
					  .http_count = 1,
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

static void check_request(const struct http1_head *head)
{
	struct target target;
	struct action request = { .kind = ACTION_HTTP_REQUEST, .subject = server.host, .port = server.port,
				  .method = head->method };
	const char *problem;

	require(target_host_is(http1_find(head, "host"), &server));
	require(target_parse(head->method, head->target, &server, &target, &problem) == 0);
	require(target_judge(&target, &policy, &request).verdict == VERDICT_ALLOW);
	require(str_equal(http1_find(head, "x-api-key"), injection.secret));
	target_done(&target);
}

/* Everything that was sent is requests, the last one perhaps not whole; then raw bytes, if a switch was granted. */
static void check_sent(const struct buf *sent, bool is_raw)
{
	struct buf out;
	struct http1 http;
	size_t at = 0, used;
	enum http1_result result = HTTP1_MORE;
	bool asked = false;

	buf_init(&out, 8 << 20);
	http1_init(&http, HTTP1_REQUEST);
	while (at < sent->size && !(asked && is_raw)) {
		result = http1_feed(&http, sent->bytes + at, sent->size - at, &out, &used);
		at += used;
		require(result != HTTP1_BAD);
		if (result == HTTP1_HEAD)
			check_request(&http.head);
		asked = result == HTTP1_END && http.head.is_upgrade;
		if (result == HTTP1_END)
			http1_next(&http);
	}
	http1_done(&http);
	buf_done(&out);
}

struct wire {
	struct exchange exchange;
	struct buf to_server, to_client, waiting;
	bool is_open;
};

static void give_bytes(struct wire *wire, const uint8_t *bytes, size_t size, bool is_client)
{
	size_t used;

	if (is_client)
		buf_put(&wire->waiting, bytes, size);
	else
		wire->is_open = exchange_from_server(&wire->exchange, bytes, size, &wire->to_client) == EXCHANGE_OPEN;
	if (!wire->is_open)
		return;
	wire->is_open = exchange_from_client(&wire->exchange, wire->waiting.bytes, wire->waiting.size, &used,
					     &wire->to_server, &wire->to_client) == EXCHANGE_OPEN;
	require(used <= wire->waiting.size);
	buf_consume(&wire->waiting, used);
}

static void run(struct wire *wire, const uint8_t *bytes, size_t size, size_t step)
{
	bool is_client = true;

	while (size && wire->is_open) {
		const uint8_t *stop = memmem(bytes, size, "\n--\n", 4);
		size_t piece = stop ? (size_t)(stop - bytes) : size;

		if (piece == 0) {
			is_client = !is_client;
			bytes += 4;
			size -= 4;
			continue;
		}
		piece = piece < step ? piece : step;
		give_bytes(wire, bytes, piece, is_client);
		bytes += piece;
		size -= piece;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const struct exchange_hooks hooks = { .outgoing = on_outgoing, .incoming = on_incoming };
	struct wire wire = { .is_open = true };
	bool is_raw;

	if (size < 2)
		return 0;
	exchange_init(&wire.exchange, &server, &policy, &hooks);
	buf_init(&wire.to_server, 8 << 20);
	buf_init(&wire.to_client, 8 << 20);
	buf_init(&wire.waiting, 8 << 20);
	run(&wire, bytes + 1, size - 1, (size_t)bytes[0] + 1);
	is_raw = wire.exchange.response.head.is_upgrade;
	check_sent(&wire.to_server, is_raw);
	exchange_client_ended(&wire.exchange);
	exchange_server_ended(&wire.exchange, &wire.to_client);
	exchange_done(&wire.exchange);
	buf_done(&wire.to_server);
	buf_done(&wire.to_client);
	buf_done(&wire.waiting);
	return 0;
}
