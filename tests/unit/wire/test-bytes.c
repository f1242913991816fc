/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "base/hash.h"
#include "wire/asking.h"
#include "wire/desk.h"
#include "wire/gate.h"
#include "wire/init.h"
#include "wire/judge.h"
#include "wire/notify.h"
#include "wire/token.h"
#include "wire/trial.h"
#include "wire/verify.h"

/*
 * The bytes of every frame, as hashes of what was sent before the fields stood in tables (wire/layout.h): programs of
 * different versions speak to each other while one is updated.
 */

static const uint8_t hash[ASKING_HASH_SIZE] = { 1, 2, 3, 255 };
static char *words[] = { (char *)"git", (char *)"", (char *)"push", NULL };
static const struct gate_open open_ = { 7, 4711, "example.org", 443 };
static const struct gate_address address = { { 0xfe, 0x80, 1 }, 65535 };
static const struct asking_shown shown = {
	2, 5, "/a b", words, "GET", NULL, "/bin/x", "/", 8080, "r1", "because", "please",
};

static void check(const char *what, struct buf *out, const char *expected)
{
	char hex[HASH_HEX_SIZE];
	struct hash sum;

	assert_int_equal(buf_error(out), 0);
	hash_bytes(&sum, out->bytes, out->size);
	hash_to_hex(&sum, hex);
	hex[16] = 0;
	if (strcmp(hex, expected))
		fail_msg("%s is %s", what, hex);
}

static int put_reply(struct buf *out, const struct asking_reply *reply)
{
	frame_begin(out, 11);
	asking_reply_put(out, reply);
	return frame_end(out);
}

#define CHECK(call, expected)                          \
	do {                                           \
		cleanup_buf struct buf out;            \
		buf_init(&out, FRAME_MESSAGE_MAX);     \
		assert_int_equal(call, 0);             \
		check(#call, &out, expected);          \
	} while (0)
#define CHECK_PART(call, expected)                     \
	do {                                           \
		cleanup_buf struct buf out;            \
		buf_init(&out, FRAME_MESSAGE_MAX);     \
		frame_begin(&out, 9);                  \
		call;                                  \
		assert_int_equal(frame_end(&out), 0);  \
		check(#call, &out, expected);          \
	} while (0)

/* What is read of it and sent again is the same; cut anywhere it is no frame. */
#define CHECK_AGAIN(name, put_first, put_again, strv)                                    \
	do {                                                                             \
		cleanup_buf struct buf out, again;                                       \
		struct name got;                                                         \
		struct frame frame;                                                      \
		buf_init(&out, FRAME_MESSAGE_MAX);                                       \
		buf_init(&again, FRAME_MESSAGE_MAX);                                     \
		assert_int_equal(put_first, 0);                                          \
		assert_int_equal(frame_open(&frame, out.bytes, out.size), 0);            \
		assert_int_equal(name##_get(&frame, &got), 0);                           \
		assert_int_equal(put_again, 0);                                          \
		assert_int_equal(again.size, out.size);                                  \
		assert_memory_equal(again.bytes, out.bytes, out.size);                   \
		free(strv);                                                              \
		for (size_t size = FRAME_HEADER_SIZE; size < out.size; size++) {         \
			assert_int_equal(frame_open(&frame, out.bytes, out.size), 0);    \
			frame.size = size;                                               \
			assert_int_equal(name##_get(&frame, &got), -EBADMSG);            \
		}                                                                        \
	} while (0)

static void what_was_read_is_sent_as_it_was(void **state)
{
	const struct gate_route route = { 1, 2, address, { { 1 }, 53 }, true, "h" };
	const struct gate_refused refused = { open_, GATE_BY_LIMIT, NULL, 3 };
	const struct gate_answer answer = { 5, 1, "r", "why", "" };
	const struct asking_reply reply = { 3, hash, 1, ASKING_TIME, 60000 };
	const struct desk_want want = { 1, 2, "/p", 443, words, NULL, 5000 };
	const struct desk_answer told = { 1, DESK_DENIED, 4, "", "reason", "hint", words };
	const struct verify_question question = { 1, words, 1, VERIFY_SCRIPT, "" };

	CHECK_AGAIN(gate_route, gate_route_put(&out, &route), gate_route_put(&again, &got), NULL);
	CHECK_AGAIN(gate_refused, gate_refused_put(&out, &refused), gate_refused_put(&again, &got), NULL);
	CHECK_AGAIN(gate_answer, gate_answer_put(&out, &answer), gate_answer_put(&again, &got), NULL);
	CHECK_AGAIN(asking_reply, put_reply(&out, &reply), put_reply(&again, &got), NULL);
	CHECK_AGAIN(desk_want, desk_want_put(&out, DESK_WANT, &want), desk_want_put(&again, DESK_WANT, &got), got.argv);
	CHECK_AGAIN(desk_answer, desk_answer_put(&out, &told), desk_answer_put(&again, &got), got.near);
	CHECK_AGAIN(verify_question, verify_question_put(&out, &question), verify_question_put(&again, &got),
		    got.argv);
}

static void what_is_beyond_its_limit_is_refused(void **state)
{
	struct gate_refused refused = { open_, GATE_REFUSAL_COUNT, NULL, 3 };
	struct desk_want want = { 1, 2, "/p", 65536, words, NULL, 5000 };
	struct asking_reply reply = { 3, hash, 2, ASKING_TIME, 60000 };
	cleanup_buf struct buf out;
	struct frame frame;

	buf_init(&out, FRAME_MESSAGE_MAX);
	assert_int_equal(gate_refused_put(&out, &refused), 0);
	assert_int_equal(frame_open(&frame, out.bytes, out.size), 0);
	assert_int_equal(gate_refused_get(&frame, &refused), -EBADMSG);
	assert_int_equal(desk_want_put(&out, DESK_WANT, &want), 0);
	assert_int_equal(frame_open(&frame, out.bytes, out.size), 0);
	assert_int_equal(desk_want_get(&frame, &want), -EBADMSG);
	assert_null(want.argv);
	assert_int_equal(put_reply(&out, &reply), 0);
	assert_int_equal(frame_open(&frame, out.bytes, out.size), 0);
	assert_int_equal(asking_reply_get(&frame, &reply), -EBADMSG);
}

static void gate_frames(void **state)
{
	const struct gate_start start = { true, NULL, "http://p:1", "" };
	const struct gate_route route = { 1, 2, address, { { 1 }, 53 }, true, "h" };
	const struct gate_lookup lookup = { "a?b", 28, false, 99, true };
	const struct gate_refused refused = { open_, GATE_BY_LIMIT, NULL, 3 };
	const struct gate_arrived arrived = { 0x80000001, 2, address };
	const struct gate_limit limit = { "rule", 4, UINT64_MAX };
	const struct gate_closed closed = { open_, "192.0.2.1", 1, 2, 3, NULL };
	const struct gate_ask ask = { 5, open_, "GET", "/p?q" };
	const struct gate_answer answer = { 5, 1, "r", "why", "" };
	const struct gate_request request = { open_, "PUT", "/x", 2, 403, GATE_REPLAYED, 10, 20, 30, "p", true, NULL, 6,
					      "s t", { "name", "the body", true, true } };

	CHECK(gate_start_put(&out, &start), "a89aae7dbb887a20");
	CHECK(gate_route_put(&out, &route), "08578cf8352ae6a0");
	CHECK(gate_lookup_put(&out, &lookup), "000ba1f0af779b77");
	CHECK(gate_open_put(&out, &open_), "827f7ec50f8feb1a");
	CHECK(gate_refused_put(&out, &refused), "555646639b273b0a");
	CHECK(gate_arrived_put(&out, &arrived), "d541439c1aa0f124");
	CHECK(gate_limit_put(&out, &limit), "2184e5877887b392");
	CHECK(gate_closed_put(&out, &closed), "fbd8b621a4db63ce");
	CHECK(gate_ask_put(&out, &ask), "dfd87f14ef5f370f");
	CHECK(gate_answer_put(&out, &answer), "7daee7248fbea329");
	CHECK_PART(gate_request_put(&out, &request), "8f60de6c068bc21e");
}

static void asking_frames(void **state)
{
	const struct asking_question question = { 3, hash, 1, 2, 4, 4711, 1ull << 40, 1000, 1, shown };
	const struct asking_grant grant = { 8, 1, 3, ASKING_USES, 5, UINT64_MAX, 77, 1ull << 41, "user 1000", shown };
	const struct asking_reply reply = { 3, hash, 1, ASKING_TIME, 60000 };
	const struct notify_start start = { NOTIFY_WEBHOOK, 1, 1000, "abc", "https://x" };
	const struct notify_question told = { 3, hash, ASKING_LISTED, 2, 1000, "what", NULL, "why", NULL, "{}" };

	CHECK_PART(asking_question_put(&out, &question), "841c7f21c8abb553");
	CHECK_PART(asking_grant_put(&out, &grant), "54633583b7198c7f");
	CHECK(put_reply(&out, &reply), "cee7341af1d4afbd");
	CHECK(notify_answer_put(&out, &reply), "1e47afbb8dbde9a4");
	CHECK(notify_start_put(&out, &start), "9bc3649fff9271cb");
	CHECK(notify_question_put(&out, &told), "0ed76f0be6fe40ab");
}

static void desk_frames(void **state)
{
	const struct desk_want want = { 1, 2, "/p", 443, words, NULL, 5000 };
	const struct desk_answer answer = { 1, DESK_DENIED, 4, NULL, "reason", "hint", words };
	const struct desk_status status = { 1, "s", "p", "l", 1, 1ull << 33 };

	CHECK(desk_want_put(&out, DESK_WANT, &want), "c13357c5ad6c9508");
	CHECK(desk_answer_put(&out, &answer), "31806c8e52043943");
	CHECK(desk_status_put(&out, &status), "46bab7dfbf9a16b3");
}

static void other_frames(void **state)
{
	const struct verify_question question = { 1, words, 1, VERIFY_SCRIPT, NULL };
	static const struct verify_answer answer = {
		1, 3, 99, { { 1, 2, 0, 1, 9, "a", "b", "c" }, { 3, 0, 1, 0, 0, "d", "", "" } }, 2,
	};
	const struct token_refused refused = { "forged", NULL, "no" };
	const struct token_held held = { "id", 1ull << 35, { 1, 2, 3, 4, 5, UINT64_MAX }, 2, 1 };
	const struct token_allowance allowance = { 1, 2, 3, "s", NULL, "/p", words };

	CHECK(verify_question_put(&out, &question), "67ad5211f8126e6e");
	CHECK(verify_answer_put(&out, &answer), "18b022b23c541688");
	CHECK(token_refused_put(&out, &refused), "4c0b2025741455dc");
	CHECK_PART(token_held_put(&out, &held), "44a6f1a02101e479");
	CHECK_PART(token_allowance_put(&out, &allowance), "84c9ebd7af2b2962");
}

static void starting_frames(void **state)
{
	const struct judge_start start = { 1, 5000, words, words, NULL, NULL };
	const struct trial_begin begin = { "s", "/", 1, words, words };
	const struct trial_shown result = { TRIAL_TOLD, "", "text" };
	const struct init_exit end = { 1, -1, 9, 2, 3, 4 };

	CHECK(judge_start_put(&out, &start), "d5bac3da3017bef4");
	CHECK(trial_begin_put(&out, &begin), "f6de1af5879c6dbd");
	CHECK(trial_shown_put(&out, &result), "7a42f445442a7f36");
	CHECK(init_exit_put(&out, &end), "97e75a7b2dc774f9");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_read_is_sent_as_it_was),
		cmocka_unit_test(what_is_beyond_its_limit_is_refused),
		cmocka_unit_test(gate_frames),
		cmocka_unit_test(asking_frames),
		cmocka_unit_test(desk_frames),
		cmocka_unit_test(other_frames),
		cmocka_unit_test(starting_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
