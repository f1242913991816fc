/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "notify/message.h"

static void a_question_is_one_object(void **state)
{
	static const uint8_t hash[ASKING_HASH_SIZE] = { 0xab };
	struct message_frame frame = { .session = "k3v9q2m4x7dt", .may_answer = true };
	struct notify_question question = {
		.number = 3, .hash = hash, .state = ASKING_WAITS, .waiting = 2, .left_ms = 5, .what = "a \"b\"\\x0a",
		.why = "", .json = "{\"kind\":\"exec\"}",
	};
	cleanup_buf struct buf out;

	buf_init(&out, MESSAGE_BODY_MAX);
	message_put_question(&out, &frame, &question);
	assert_string_equal(buf_text(&out),
			    "{\"v\":1,\"event\":\"question\",\"session\":\"k3v9q2m4x7dt\",\"question\":3,"
			    "\"hash\":\"sha256:"
			    "ab00000000000000000000000000000000000000000000000000000000000000\",\"state\":\"waiting\","
			    "\"waiting\":2,\"left_ms\":5,\"may_answer\":true,\"text\":\"a \\\"b\\\"\\\\x0a\","
			    "\"what\":{\"kind\":\"exec\"}}");
	buf_reset(&out);
	message_put_closed(&out, &frame, 3, hash, NOTIFY_DENIED);
	assert_string_equal(buf_text(&out),
			    "{\"v\":1,\"event\":\"closed\",\"session\":\"k3v9q2m4x7dt\",\"question\":3,"
			    "\"hash\":\"sha256:"
			    "ab00000000000000000000000000000000000000000000000000000000000000\","
			    "\"answer\":\"denied\"}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_question_is_one_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
