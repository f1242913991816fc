/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "judge/proposal.h"

static struct proposal parse(const char *text)
{
	struct proposal proposal;

	memset(&proposal, 0x55, sizeof proposal);
	proposal_parse(text, strlen(text), &proposal);
	assert_true(strlen(proposal.reason) < JUDGE_REASON_MAX);
	return proposal;
}

static void a_proposal_is_written_down_again(void **state)
{
	struct proposal proposal = parse("{\"reason\":\"only it\","
					 "\"narrow\":{\"files\":{\"change\":[\"a\\nb\\/c\"]}}}");

	assert_string_equal(proposal.text, "{\n \"files\": {\n  \"change\": [\n   \"a\\nb/c\"\n  ]\n }\n}");
	assert_string_equal(proposal.reason, "only it");
	proposal_done(&proposal);
	proposal = parse("{\"narrow\":{}}");
	assert_string_equal(proposal.text, "{}");
	assert_string_equal(proposal.reason, "");
	proposal_done(&proposal);
}

static void nothing_else_is_one(void **state)
{
	static const char *const bad[] = {
		"", "{}", "[]", "no", "\"narrow\"", "{\"narrow\":[]}", "{\"narrow\":null}", "{\"narrow\":\"{}\"}",
		"{\"narrow\":{},\"more\":1}", "{\"narrow\":{},\"reason\":1}", "{\"narrow\":{},\"narrow\":{}}",
		"{\"narrow\":{\"a\":1,\"a\":2}}", "{\"narrow\":{}}{\"narrow\":{}}", "```json\n{\"narrow\":{}}\n```",
		"{\"verdict\":\"allow\"}", "{\"narrow\":{}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct proposal proposal = parse(bad[i]);

		if (proposal.text || !*proposal.reason)
			fail_msg("taken: %s", bad[i]);
	}
}

static void what_is_too_long_or_too_deep_is_none(void **state)
{
	cleanup_buf struct buf text;
	struct proposal proposal;

	buf_init(&text, 1 << 20);
	buf_put_text(&text, "{\"narrow\":{\"files\":{\"mask\":[\"");
	for (size_t i = 0; i < JUDGE_PROPOSAL_MAX; i++)
		buf_put_char(&text, 'a');
	buf_put_text(&text, "\"]}}}");
	proposal = parse(buf_text(&text));
	assert_null(proposal.text);
	assert_non_null(strstr(proposal.reason, "too long"));
	/* Indented it would be megabytes. */
	buf_done(&text);
	buf_init(&text, 1 << 20);
	buf_put_text(&text, "{\"narrow\":{\"a\":");
	for (size_t i = 0; i < 1500; i++)
		buf_put_char(&text, '[');
	for (size_t i = 0; i < 1500; i++)
		buf_put_char(&text, ']');
	buf_put_text(&text, "}}");
	assert_null(parse(buf_text(&text)).text);
	assert_null(parse("{\"narrow\":{\"a\":").text);
}

static void a_completion_is_its_one_message(void **state)
{
	static const char good[] = "{\"choices\":[{\"message\":{\"content\":\"{\\\"narrow\\\":{}}\"}}]}";
	static const char two[] = "{\"choices\":[{\"message\":{\"content\":\"{\\\"narrow\\\":{}}\"}},{}]}";
	struct proposal proposal;

	proposal_parse_completion(good, strlen(good), &proposal);
	assert_string_equal(proposal.text, "{}");
	proposal_done(&proposal);
	proposal_parse_completion(two, strlen(two), &proposal);
	assert_null(proposal.text);
	proposal_parse_completion("{\"narrow\":{}}", 13, &proposal);
	assert_null(proposal.text);
}

static void a_reason_is_cut_between_characters(void **state)
{
	cleanup_buf struct buf text;
	struct proposal proposal;

	buf_init(&text, 2000);
	buf_put_text(&text, "{\"narrow\":{},\"reason\":\"x");
	for (size_t i = 0; i < 200; i++)
		buf_put_text(&text, "ä");
	buf_put_text(&text, "\"}");
	proposal = parse(buf_text(&text));
	assert_non_null(proposal.text);
	assert_int_equal(strlen(proposal.reason), JUDGE_REASON_MAX - 1);
	assert_int_equal((unsigned char)proposal.reason[JUDGE_REASON_MAX - 2], 0xa4);
	proposal_done(&proposal);
}

static void a_case_is_one_text_of_the_request(void **state)
{
	cleanup_buf struct buf out;

	buf_init(&out, 1 << 16);
	proposal_put_request(&out, "m", "{\"task\":\"\\\"}],\\\"role\\\":\"}");
	assert_non_null(strstr(buf_text(&out), "\"role\":\"user\",\"content\":\"{\\\"task\\\":\\\"\\\\\\\"}],"));
	assert_non_null(strstr(buf_text(&out), "You can only take away"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_proposal_is_written_down_again),
		cmocka_unit_test(nothing_else_is_one),
		cmocka_unit_test(what_is_too_long_or_too_deep_is_none),
		cmocka_unit_test(a_completion_is_its_one_message),
		cmocka_unit_test(a_reason_is_cut_between_characters),
		cmocka_unit_test(a_case_is_one_text_of_the_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
