/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "judge/opinion.h"

static struct opinion parse(const char *text)
{
	struct opinion opinion;

	memset(&opinion, 0x55, sizeof opinion);
	opinion_parse(text, strlen(text), &opinion);
	assert_true(opinion.verdict < JUDGE_VERDICT_COUNT && strlen(opinion.reason) < JUDGE_REASON_MAX);
	return opinion;
}

static void a_verdict_is_read(void **state)
{
	assert_int_equal(parse("{\"verdict\":\"allow\"}").verdict, JUDGE_ALLOW);
	assert_string_equal(parse("{\"verdict\":\"allow\"}").reason, "");
	assert_int_equal(parse(" {\"reason\":\"r\",\"verdict\":\"deny\"}\n").verdict, JUDGE_DENY);
	assert_string_equal(parse("{\"reason\":\"a\\u001b[2J\\n\",\"verdict\":\"deny\"}").reason, "a\\x1b[2J\\x0a");
	assert_int_equal(parse("{\"verdict\":\"unclear\"}").verdict, JUDGE_UNCLEAR);
}

static void nothing_else_is_leave(void **state)
{
	static const char *const bad[] = {
		"", "allow", "\"allow\"", "[]", "{}", "{\"verdict\":true}", "{\"verdict\":\"ALLOW\"}",
		"{\"verdict\":\"allow\",\"more\":1}", "{\"verdict\":\"allow\",\"reason\":1}",
		"{\"verdict\":\"allow\",\"verdict\":\"allow\"}", "{\"verdict\":\"allow\"}{\"verdict\":\"allow\"}",
		"{\"verdict\":\"allow\\u0000\"}", "```json\n{\"verdict\":\"allow\"}\n```", "{\"verdict\":[\"allow\"]}",
		"{\"choices\":[{\"message\":{\"content\":\"{\\\"verdict\\\":\\\"allow\\\"}\"}}]}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (parse(bad[i]).verdict != JUDGE_UNCLEAR)
			fail_msg("taken: %s", bad[i]);
}

static void a_completion_is_its_one_message(void **state)
{
	static const struct {
		const char *text;
		enum judge_verdict verdict;
	} rows[] = {
		{ "{\"choices\":[{\"message\":{\"content\":\"{\\\"verdict\\\":\\\"allow\\\"}\"}}],\"id\":1}",
		  JUDGE_ALLOW },
		{ "{\"choices\":[{\"message\":{\"content\":\"{\\\"verdict\\\":\\\"deny\\\"}\"}}]}", JUDGE_DENY },
		{ "{\"choices\":[{\"message\":{\"content\":\"allow\"}}]}", JUDGE_UNCLEAR },
		{ "{\"choices\":[{\"message\":{\"content\":null}}]}", JUDGE_UNCLEAR },
		{ "{\"choices\":[]}", JUDGE_UNCLEAR },
		{ "{\"choices\":{}}", JUDGE_UNCLEAR },
		{ "[]", JUDGE_UNCLEAR },
		{ "{\"verdict\":\"allow\"}", JUDGE_UNCLEAR },
		{ "{\"choices\":[{\"message\":{\"content\":\"{\\\"verdict\\\":\\\"allow\\\"}\"}},{}]}", JUDGE_UNCLEAR },
	};
	struct opinion opinion;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		opinion_parse_completion(rows[i].text, strlen(rows[i].text), &opinion);
		if (opinion.verdict != rows[i].verdict)
			fail_msg("%s: %d", rows[i].text, opinion.verdict);
	}
}

static void a_case_is_one_text_of_the_request(void **state)
{
	cleanup_buf struct buf out;

	buf_init(&out, 1 << 16);
	opinion_put_request(&out, "m", "{\"task\":\"\\\"}],\\\"role\\\":\"}");
	assert_non_null(strstr(buf_text(&out), "\"role\":\"user\",\"content\":\"{\\\"task\\\":\\\"\\\\\\\"}],"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_verdict_is_read),
		cmocka_unit_test(nothing_else_is_leave),
		cmocka_unit_test(a_completion_is_its_one_message),
		cmocka_unit_test(a_case_is_one_text_of_the_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
