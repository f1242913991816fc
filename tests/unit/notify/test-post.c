/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "notify/post.h"

static void the_host_is_looked_up_where_it_is_a_name(void **state)
{
	static const struct {
		const char *url, *host, *port;
	} rows[] = {
		{ "https://hook.example/x", "hook.example", "443" },
		{ "https://hook.example:8443", "hook.example", "8443" },
		{ "http://127.0.0.1:9/x", NULL, "9" },
		{ "http://[::1]/", NULL, "80" },
		{ "https://u:p@h.example/?q#f", "h.example", "443" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct post_target target = { .url = rows[i].url };

		assert_int_equal(post_target_init(&target), 0);
		if (rows[i].host)
			assert_string_equal(target.host, rows[i].host);
		else
			assert_null(target.host);
		assert_string_equal(target.port, rows[i].port);
		post_target_done(&target);
	}
	assert_int_not_equal(post_target_init(&(struct post_target){ .url = "https://" }), 0);
}

static void a_question_is_one_object(void **state)
{
	static const uint8_t hash[ASKING_HASH_SIZE] = { 0xab };
	struct post_target target = { .session = "k3v9q2m4x7dt", .may_answer = true };
	struct notify_question question = {
		.number = 3, .hash = hash, .state = ASKING_WAITS, .waiting = 2, .left_ms = 5, .what = "a \"b\"\\x0a",
		.why = "", .json = "{\"kind\":\"exec\"}",
	};
	cleanup_buf struct buf out;

	buf_init(&out, POST_BODY_MAX);
	post_put_question(&out, &target, &question);
	assert_string_equal(buf_text(&out),
			    "{\"v\":1,\"event\":\"question\",\"session\":\"k3v9q2m4x7dt\",\"question\":3,"
			    "\"hash\":\"sha256:"
			    "ab00000000000000000000000000000000000000000000000000000000000000\",\"state\":\"waiting\","
			    "\"waiting\":2,\"left_ms\":5,\"may_answer\":true,\"text\":\"a \\\"b\\\"\\\\x0a\","
			    "\"what\":{\"kind\":\"exec\"}}");
	buf_reset(&out);
	post_put_closed(&out, &target, 3, hash, NOTIFY_DENIED);
	assert_string_equal(buf_text(&out),
			    "{\"v\":1,\"event\":\"closed\",\"session\":\"k3v9q2m4x7dt\",\"question\":3,"
			    "\"hash\":\"sha256:"
			    "ab00000000000000000000000000000000000000000000000000000000000000\","
			    "\"answer\":\"denied\"}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_host_is_looked_up_where_it_is_a_name),
		cmocka_unit_test(a_question_is_one_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
