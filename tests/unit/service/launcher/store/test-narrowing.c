/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "service/launcher/store/narrowing.h"

static char written[8192];
static struct err err;

/* internet: 2: not said. What narrowing_write() returns, and what it wrote. */
static int narrow(uint64_t internet, const char *const *allowed, const char *const *denied)
{
	struct service_message *message = malloc(sizeof *message);
	const char *problem;
	struct frame frame;
	struct buf out, text;
	int r;

	assert_non_null(message);
	buf_init(&out, FRAME_MESSAGE_MAX);
	buf_init_fixed(&text, written, sizeof written);
	service_begin_request(&out, 1, SERVICE_CREATE);
	if (internet < 2)
		field_put_u64(&out, "internet", internet);
	if (allowed)
		field_put_strings(&out, "allow_out", allowed);
	if (denied)
		field_put_strings(&out, "deny_out", denied);
	assert_int_equal(frame_end(&out), 0);
	assert_int_equal(frame_open(&frame, out.bytes, out.size), 0);
	assert_int_equal(service_read(&frame, NULL, 0, message, &problem), 0);
	r = narrowing_write(&text, message, &err);
	(void)buf_text(&text);
	service_message_done(message);
	free(message);
	buf_done(&out);
	return r;
}

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void what_says_nothing_writes_nothing(void **state)
{
	assert_int_equal(narrow(2, NULL, NULL), 0);
	assert_int_equal(narrow(1, NULL, NULL), 0);
	/* What is allowed where all is open is open anyway. */
	assert_int_equal(narrow(1, LIST("a.example"), NULL), 0);
	assert_string_equal(written, "");
}

static void a_closed_network_lists_what_is_open(void **state)
{
	static const char expected[] = "atoll: 1\nnetwork:\n  default: deny\n  allow:\n"
				       "    - {host: \"a.example\", listed: true}\n"
				       "    - {host: \"*.b.example\", listed: true}\n    - {cidr: \"192.0.2.1/32\"}\n"
				       "    - {cidr: \"198.51.100.0/24\"}\n    - {cidr: \"2001:db8::/32\"}\n";
	const char *const *allowed = LIST("a.example", "*.b.example", "192.0.2.1", "198.51.100.77/24",
	"2001:db8::1/32");

	assert_int_equal(narrow(0, allowed, NULL), 1);
	assert_string_equal(written, expected);
	assert_int_equal(narrow(2, allowed, LIST("0.0.0.0/0")), 1);
	assert_string_equal(written, expected);
	assert_int_equal(narrow(0, NULL, NULL), 1);
	assert_string_equal(written, "atoll: 1\nnetwork:\n  default: deny\n  deny:\n"
				     "    - {cidr: \"0.0.0.0/0\"}\n    - {cidr: \"::/0\"}\n");
}

static void a_denied_block_is_a_denial(void **state)
{
	assert_int_equal(narrow(2, LIST("a.example"), LIST("192.0.2.0/24", "203.0.113.9")), 1);
	assert_string_equal(written, "atoll: 1\nnetwork:\n  deny:\n    - {cidr: \"192.0.2.0/24\"}\n"
				     "    - {cidr: \"203.0.113.9/32\"}\n");
	/* There an allowed one would win, and in a policy it does not. */
	assert_int_equal(narrow(2, LIST("192.0.2.7"), LIST("192.0.2.0/24")), -EINVAL);
	assert_non_null(strstr(err.message, "192.0.2.7"));
	assert_int_equal(narrow(2, LIST("192.0.3.7"), LIST("192.0.2.0/24")), 1);
	assert_int_equal(narrow(2, LIST("192.0.0.0/16"), LIST("192.0.2.0/24")), 1);
}

/* Nothing that a client says becomes another line of the policy, or another value. */
static void what_is_no_address_and_no_name_is_refused(void **state)
{
	static const char *const wrong[] = { "\"}", "a b", "a\",deny: [x]", "{}", "a:1", "1.2.3.4/33", "1.2.3.4/", "/8",
		"1.2.3.4/8/8", "::1/129", "*", "*.", "**.a", "a.*.b", "1.2.3", "é.example", "a#b", "1.2.3.4.5",
		"999.1.1.1" };

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_int_equal(narrow(0, LIST(wrong[i]), NULL), -EINVAL);
		assert_int_equal(narrow(2, NULL, LIST(wrong[i])), -EINVAL);
	}
	assert_int_equal(narrow(2, NULL, LIST("a.example")), -EINVAL);
}

/* A function reaches nothing that it does not name, and may want less memory than its policy has. */
static void a_function_is_closed_unless_it_says_otherwise(void **state)
{
	static const struct {
		uint64_t internet, memory_mb;     /* internet 2, memory 0: not said */
		const char *expected;
	} rows[] = {
		{ 2, 0, "atoll: 1\nnetwork:\n  default: deny\n  deny:\n    - {cidr: \"0.0.0.0/0\"}\n"
			"    - {cidr: \"::/0\"}\n" },
		{ 1, 0, "" },
		{ 1, 64, "atoll: 1\nresources:\n  memory: 64MiB\n" },
		{ 0, 64, "atoll: 1\nresources:\n  memory: 64MiB\nnetwork:\n  default: deny\n  deny:\n"
			 "    - {cidr: \"0.0.0.0/0\"}\n    - {cidr: \"::/0\"}\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct service_message *message = malloc(sizeof *message);
		const char *problem;
		struct frame frame;
		struct buf out, text;

		assert_non_null(message);
		buf_init(&out, FRAME_MESSAGE_MAX);
		buf_init_fixed(&text, written, sizeof written);
		service_begin_request(&out, 1, SERVICE_FUNCTION_DEPLOY);
		field_put_string(&out, "name", "a");
		field_put_string(&out, "runtime", "python");
		field_put_string(&out, "entry", "a.py:b");
		if (rows[i].internet < 2)
			field_put_u64(&out, "internet", rows[i].internet);
		if (rows[i].memory_mb)
			field_put_u64(&out, "memory_mb", rows[i].memory_mb);
		assert_int_equal(frame_end(&out), 0);
		assert_int_equal(frame_open(&frame, out.bytes, out.size), 0);
		assert_int_equal(service_read(&frame, NULL, 0, message, &problem), 0);
		assert_int_equal(narrowing_write(&text, message, &err), *rows[i].expected ? 1 : 0);
		assert_string_equal(buf_text(&text), rows[i].expected);
		service_message_done(message);
		free(message);
		buf_done(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_is_closed_unless_it_says_otherwise),
		cmocka_unit_test(what_says_nothing_writes_nothing),
		cmocka_unit_test(a_closed_network_lists_what_is_open),
		cmocka_unit_test(a_denied_block_is_a_denial),
		cmocka_unit_test(what_is_no_address_and_no_name_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
