/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/notify.h"

static struct buf out;
static const uint8_t hash[ASKING_HASH_SIZE] = { 1, 2, 3 };

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

static void a_start_comes_back(void **state)
{
	struct notify_start start = { NOTIFY_WEBHOOK, NOTIFY_HAS_KEY | NOTIFY_MAY_ANSWER, 7, "s", "https://a" }, read;
	struct frame frame;

	assert_int_equal(notify_start_put(&out, &start), 0);
	frame = reopen();
	assert_int_equal(notify_start_get(&frame, &read), 0);
	assert_true(read.kind == NOTIFY_WEBHOOK && read.flags == start.flags && read.uid == 7);
	assert_string_equal(read.address, "https://a");
	start.kind = NOTIFY_KIND_COUNT;
	assert_int_equal(notify_start_put(&out, &start), 0);
	frame = reopen();
	assert_int_equal(notify_start_get(&frame, &read), -EBADMSG);
	start = (struct notify_start){ NOTIFY_DESKTOP, NOTIFY_FLAGS + 1, 0, "s", "" };
	assert_int_equal(notify_start_put(&out, &start), 0);
	frame = reopen();
	assert_int_equal(notify_start_get(&frame, &read), -EBADMSG);
}

static void a_question_comes_back(void **state)
{
	struct notify_question question = { 3, hash, ASKING_LISTED, 2, 9, "what", NULL, "why", NULL, "{}" }, read;
	struct frame frame;

	assert_int_equal(notify_question_put(&out, &question), 0);
	frame = reopen();
	assert_int_equal(notify_question_get(&frame, &read), 0);
	assert_true(read.number == 3 && read.state == ASKING_LISTED && read.waiting == 2 && read.left_ms == 9);
	assert_memory_equal(read.hash, hash, sizeof hash);
	assert_string_equal(read.what, "what");
	assert_null(read.who);
	assert_null(read.words);
	question.state = ASKING_ANSWERED;
	assert_int_equal(notify_question_put(&out, &question), 0);
	frame = reopen();
	assert_int_equal(notify_question_get(&frame, &read), -EBADMSG);
}

static void what_comes_from_a_notice_is_within_its_bounds(void **state)
{
	struct asking_reply reply = { 3, hash, 1, ASKING_USES, 2 }, read;
	char trouble[NOTIFY_TROUBLE_MAX + 2];
	struct frame frame;
	const char *text;
	bool is_heard;

	assert_int_equal(notify_answer_put(&out, &reply), 0);
	frame = reopen();
	assert_int_equal(notify_answer_get(&frame, &read), 0);
	assert_true(read.number == 3 && read.scope == ASKING_USES && read.amount == 2);
	reply.amount = 0;
	assert_int_equal(notify_answer_put(&out, &reply), 0);
	frame = reopen();
	assert_int_equal(notify_answer_get(&frame, &read), -EBADMSG);
	reply.scope = ASKING_FOREVER;
	assert_int_equal(notify_answer_put(&out, &reply), 0);
	frame = reopen();
	assert_int_equal(notify_answer_get(&frame, &read), -EBADMSG);
	memset(trouble, 'x', sizeof trouble);
	trouble[NOTIFY_TROUBLE_MAX] = 0;
	assert_int_equal(notify_state_put(&out, true, trouble), 0);
	frame = reopen();
	assert_int_equal(notify_state_get(&frame, &is_heard, &text), 0);
	trouble[NOTIFY_TROUBLE_MAX] = 'x';
	trouble[NOTIFY_TROUBLE_MAX + 1] = 0;
	assert_int_equal(notify_state_put(&out, true, trouble), 0);
	frame = reopen();
	assert_int_equal(notify_state_get(&frame, &is_heard, &text), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_start_comes_back),
		cmocka_unit_test(a_question_comes_back),
		cmocka_unit_test(what_comes_from_a_notice_is_within_its_bounds),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
