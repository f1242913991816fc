/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/judge.h"

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

static int start_comes_back(const struct judge_start *start)
{
	struct judge_start read;
	struct frame frame;
	int r;

	assert_int_equal(judge_start_put(&out, start), 0);
	frame = reopen();
	r = judge_start_get(&frame, &read);
	if (r == 0) {
		assert_int_equal(read.timeout_ms, start->timeout_ms);
		free(read.command);
		free(read.environment);
	}
	return r;
}

static void it_is_a_command_or_a_model(void **state)
{
	char *command[] = { (char *)"/bin/v", NULL }, *nothing[] = { NULL };
	struct judge_start start = { .timeout_ms = 5, .command = command, .environment = nothing };

	assert_int_equal(start_comes_back(&start), 0);
	start.url = "https://a";
	assert_int_equal(start_comes_back(&start), -EBADMSG);
	start.command = nothing;
	assert_int_equal(start_comes_back(&start), -EBADMSG);
	start.model = "m";
	assert_int_equal(start_comes_back(&start), 0);
	start.url = start.model = NULL;
	assert_int_equal(start_comes_back(&start), -EBADMSG);
	start.command = command;
	start.timeout_ms = 0;
	assert_int_equal(start_comes_back(&start), -EBADMSG);
}

static void a_reason_is_cut_between_characters(void **state)
{
	char long_reason[2 * JUDGE_REASON_MAX];
	enum judge_verdict verdict;
	struct frame frame;
	const char *reason;
	uint32_t id;

	for (size_t i = 0; i + 2 < sizeof long_reason; i += 2)
		memcpy(long_reason + i, "ü", 3);
	assert_int_equal(judge_verdict_put(&out, 7, JUDGE_DENY, long_reason), 0);
	frame = reopen();
	assert_int_equal(judge_verdict_get(&frame, &id, &verdict, &reason), 0);
	assert_true(id == 7 && verdict == JUDGE_DENY && strlen(reason) == JUDGE_REASON_MAX - 2);
	assert_int_equal(judge_verdict_put(&out, 0, JUDGE_DENY, ""), 0);
	frame = reopen();
	assert_int_equal(judge_verdict_get(&frame, &id, &verdict, &reason), -EBADMSG);
	assert_int_equal(judge_verdict_put(&out, 7, JUDGE_VERDICT_COUNT, ""), 0);
	frame = reopen();
	assert_int_equal(judge_verdict_get(&frame, &id, &verdict, &reason), -EBADMSG);
}

static void a_proposal_is_a_text_or_the_reason_why_there_is_none(void **state)
{
	static char long_text[JUDGE_PROPOSAL_MAX + 2];
	const char *text, *reason;
	struct frame frame;
	uint32_t id;

	assert_int_equal(judge_proposal_put(&out, 3, "{}", "why"), 0);
	frame = reopen();
	assert_int_equal(judge_proposal_get(&frame, &id, &text, &reason), 0);
	assert_int_equal(id, 3);
	assert_string_equal(text, "{}");
	assert_string_equal(reason, "why");
	assert_int_equal(judge_proposal_put(&out, 3, NULL, ""), 0);
	frame = reopen();
	assert_int_equal(judge_proposal_get(&frame, &id, &text, &reason), 0);
	assert_null(text);
	assert_int_equal(judge_proposal_put(&out, 0, "{}", ""), 0);
	frame = reopen();
	assert_int_equal(judge_proposal_get(&frame, &id, &text, &reason), -EBADMSG);
	memset(long_text, 'a', sizeof long_text - 1);
	assert_int_equal(judge_proposal_put(&out, 3, long_text, ""), 0);
	frame = reopen();
	assert_int_equal(judge_proposal_get(&frame, &id, &text, &reason), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_proposal_is_a_text_or_the_reason_why_there_is_none),
		cmocka_unit_test(it_is_a_command_or_a_model),
		cmocka_unit_test(a_reason_is_cut_between_characters),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
