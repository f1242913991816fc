/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/gate.h"
#include "wire/token.h"

static struct buf out;

static int setup(void **state)
{
	buf_init(&out, FRAME_MESSAGE_MAX);
	return 0;
}

static int teardown(void **state)
{
	buf_done(&out);
	return 0;
}

static struct frame reopen(void)
{
	struct frame frame;

	assert_int_equal(frame_open(&frame, out.bytes, out.size), 0);
	return frame;
}

static const struct gate_open connection = { .id = 7, .pid = 42, .host = "web.test", .port = 443 };

static void assert_connection(const struct gate_open *open)
{
	assert_int_equal(open->id, 7);
	assert_int_equal(open->pid, 42);
	assert_string_equal(open->host, "web.test");
	assert_int_equal(open->port, 443);
}

static void messages_come_back(void **state)
{
	struct gate_route route = { 5, 42, { { 1 }, 5000 }, { { [15] = 9 }, 443 }, true, "web.test" }, route_back;
	struct gate_start start;
	struct gate_lookup lookup;
	struct gate_open open;
	struct gate_refused refused;
	struct gate_closed closed;
	struct frame frame;

	assert_int_equal(gate_start_put(&out, &(struct gate_start){ true, "a=b", NULL, "x" }), 0);
	frame = reopen();
	assert_int_equal(gate_start_get(&frame, &start), 0);
	assert_true(start.has_ipv6);
	assert_string_equal(start.test_hosts, "a=b");
	assert_null(start.proxy);
	assert_string_equal(start.no_proxy, "x");
	assert_int_equal(gate_route_put(&out, &route), 0);
	frame = reopen();
	assert_int_equal(gate_route_get(&frame, &route_back), 0);
	assert_int_equal(route_back.id, 5);
	assert_int_equal(route_back.pid, 42);
	assert_true(route_back.is_granted);
	assert_string_equal(route_back.host, "web.test");
	assert_int_equal(route_back.source.port, 5000);
	assert_memory_equal(route_back.target.bytes, route.target.bytes, 16);
	assert_int_equal(gate_lookup_put(&out, &(struct gate_lookup){ "x?y", 28, true, 17 }), 0);
	frame = reopen();
	assert_int_equal(gate_lookup_get(&frame, &lookup), 0);
	assert_true(lookup.is_allowed && lookup.type == 28 && lookup.number == 17);
	assert_string_equal(lookup.name, "x?y");
	assert_int_equal(gate_open_put(&out, &connection), 0);
	frame = reopen();
	assert_int_equal(gate_open_get(&frame, &open), 0);
	assert_connection(&open);
	assert_int_equal(gate_refused_put(&out, &(struct gate_refused){ connection, GATE_BY_LIMIT, NULL }), 0);
	frame = reopen();
	assert_int_equal(gate_refused_get(&frame, &refused), 0);
	assert_connection(&refused.open);
	assert_int_equal(refused.refusal, GATE_BY_LIMIT);
	assert_null(refused.detail);
	assert_int_equal(gate_closed_put(&out, &(struct gate_closed){ connection, "::1", 1, 2, 3, "why" }), 0);
	frame = reopen();
	assert_int_equal(gate_closed_get(&frame, &closed), 0);
	assert_connection(&closed.open);
	assert_int_equal(closed.in_bytes + 10 * closed.out_bytes + 100 * closed.us, 321);
	assert_string_equal(closed.why, "why");
}

static void what_is_told_about_limits_and_ports_comes_back(void **state)
{
	struct gate_arrived arrived = { 1u << 31 | 7, 3, { { [15] = 1 }, 5000 } }, arrived_back;
	struct gate_lookup lookup = { .name = "a", .type = 1, .is_paused = true };
	struct gate_limit limit;
	struct frame frame;

	assert_int_equal(gate_limit_put(&out, &(struct gate_limit){ "network.allow[3]", 2, 600 }), 0);
	frame = reopen();
	assert_int_equal(gate_limit_get(&frame, &limit), 0);
	assert_string_equal(limit.rule, "network.allow[3]");
	assert_int_equal(limit.kind, 2);
	assert_int_equal(limit.amount, 600);
	assert_int_equal(gate_arrived_put(&out, &arrived), 0);
	frame = reopen();
	assert_int_equal(gate_arrived_get(&frame, &arrived_back), 0);
	assert_int_equal(arrived_back.id, arrived.id);
	assert_int_equal(arrived_back.index, 3);
	assert_int_equal(arrived_back.source.port, 5000);
	assert_int_equal(gate_lookup_put(&out, &lookup), 0);
	frame = reopen();
	assert_int_equal(gate_lookup_get(&frame, &lookup), 0);
	assert_true(lookup.is_paused && !lookup.is_allowed);
	/* Nothing is allowed and refused. */
	lookup.is_allowed = true;
	assert_int_equal(gate_lookup_put(&out, &lookup), 0);
	frame = reopen();
	assert_int_equal(gate_lookup_get(&frame, &lookup), -EBADMSG);
}

/* Every shorter frame is refused, each of its exact size so that the address sanitizer sees a read beyond. */
static void assert_cuts_are_refused(int (*get)(struct frame *frame, void *out_value))
{
	union {
		struct gate_start start;
		struct gate_route route;
		struct gate_refused refused;
		struct gate_closed closed;
		struct gate_ask ask;
		struct gate_answer answer;
		struct token_refused token;
	} value;

	for (size_t size = FRAME_HEADER_SIZE; size < out.size; size++) {
		uint8_t *copy = malloc(size);
		uint32_t claimed = (uint32_t)size;
		struct frame frame;

		memcpy(copy, out.bytes, size);
		memcpy(copy + 8, &claimed, sizeof claimed);
		assert_int_equal(frame_open(&frame, copy, size), 0);
		assert_int_equal(get(&frame, &value), -EBADMSG);
		free(copy);
	}
}

#define GETTER(name) static int get_##name(struct frame *frame, void *value) { return gate_##name##_get(frame, value); }
GETTER(start)
GETTER(route)
GETTER(lookup)
GETTER(open)
GETTER(refused)
GETTER(closed)
GETTER(ask)
GETTER(answer)

static int get_token(struct frame *frame, void *value)
{
	return token_refused_get(frame, value);
}

static void messages_that_are_cut(void **state)
{
	assert_int_equal(gate_start_put(&out, &(struct gate_start){ false, NULL, "http://p:1", NULL }), 0);
	assert_cuts_are_refused(get_start);
	assert_int_equal(gate_route_put(&out, &(struct gate_route){ 0 }), 0);
	assert_cuts_are_refused(get_route);
	assert_int_equal(gate_lookup_put(&out, &(struct gate_lookup){ "a", 1, false }), 0);
	assert_cuts_are_refused(get_lookup);
	assert_int_equal(gate_open_put(&out, &connection), 0);
	assert_cuts_are_refused(get_open);
	assert_int_equal(gate_refused_put(&out, &(struct gate_refused){ connection, 0, "d" }), 0);
	assert_cuts_are_refused(get_refused);
	assert_int_equal(gate_closed_put(&out, &(struct gate_closed){ connection, NULL, 1, 2, 3, NULL }), 0);
	assert_cuts_are_refused(get_closed);
	assert_int_equal(gate_ask_put(&out, &(struct gate_ask){ 1, connection, "GET", "/x" }), 0);
	assert_cuts_are_refused(get_ask);
	assert_int_equal(gate_answer_put(&out, &(struct gate_answer){ 1, 1, "r", "why", "" }), 0);
	assert_cuts_are_refused(get_answer);
	assert_int_equal(token_refused_put(&out, &(struct token_refused){ "forged", NULL, "why" }), 0);
	assert_cuts_are_refused(get_token);
}

static void questions_about_requests_come_back(void **state)
{
	struct gate_ask ask = { 7, connection, "POST", "/a\x1b b" }, asked;
	struct gate_answer answer = { 7, 0, "ask.grant[2]", "a person refused this", "ask" }, answered;
	struct token_refused refused = { "expired", "00ff", "it has expired" }, told;
	struct frame frame;

	assert_int_equal(gate_ask_put(&out, &ask), 0);
	frame = reopen();
	assert_int_equal(gate_ask_get(&frame, &asked), 0);
	assert_int_equal(asked.id, 7);
	assert_string_equal(asked.open.host, connection.host);
	assert_string_equal(asked.path, ask.path);
	assert_int_equal(gate_answer_put(&out, &answer), 0);
	frame = reopen();
	assert_int_equal(gate_answer_get(&frame, &answered), 0);
	assert_string_equal(answered.reason, answer.reason);
	assert_int_equal(answered.is_granted, 0);
	assert_int_equal(token_refused_put(&out, &refused), 0);
	frame = reopen();
	assert_int_equal(token_refused_get(&frame, &told), 0);
	assert_string_equal(told.id, "00ff");
	/* A number of nothing, an answer that is neither, and no reason. */
	ask.id = 0;
	assert_int_equal(gate_ask_put(&out, &ask), 0);
	frame = reopen();
	assert_int_equal(gate_ask_get(&frame, &asked), -EBADMSG);
	answer.is_granted = 2;
	assert_int_equal(gate_answer_put(&out, &answer), 0);
	frame = reopen();
	assert_int_equal(gate_answer_get(&frame, &answered), -EBADMSG);
	refused.reason = NULL;
	assert_int_equal(token_refused_put(&out, &refused), 0);
	frame = reopen();
	assert_int_equal(token_refused_get(&frame, &told), -EBADMSG);
}

static void values_that_cannot_be(void **state)
{
	struct gate_refused refused = { connection, GATE_REFUSAL_COUNT, NULL };
	struct gate_open open = { .host = "a", .port = 65536 };
	struct gate_lookup lookup;
	struct frame frame;

	assert_int_equal(gate_refused_put(&out, &refused), 0);
	frame = reopen();
	assert_int_equal(gate_refused_get(&frame, &refused), -EBADMSG);
	assert_int_equal(gate_open_put(&out, &open), 0);
	frame = reopen();
	assert_int_equal(gate_open_get(&frame, &open), -EBADMSG);
	open = (struct gate_open){ .port = 1 };
	assert_int_equal(gate_open_put(&out, &open), 0);
	frame = reopen();
	assert_int_equal(gate_open_get(&frame, &open), -EBADMSG);
	assert_int_equal(gate_lookup_put(&out, &(struct gate_lookup){ NULL, 1, true }), 0);
	frame = reopen();
	assert_int_equal(gate_lookup_get(&frame, &lookup), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_come_back),
		cmocka_unit_test(what_is_told_about_limits_and_ports_comes_back),
		cmocka_unit_test(messages_that_are_cut),
		cmocka_unit_test(questions_about_requests_come_back),
		cmocka_unit_test(values_that_cannot_be),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
