/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "desk/line.h"
#include "desk/reply.h"
#include "policy/decide.h"

static int parse(const char *text, struct line *line)
{
	const char *why = NULL;
	int r = line_parse(text, strlen(text), line, &why);

	assert_true(r == 0 || why);
	return r;
}

static void what_is_asked_is_read(void **state)
{
	struct line line;

	assert_int_equal(parse("{\"want\":\"file.read\",\"subject\":\"/a b\",\"reason\":\"w\\u00fc\",\"seconds\":5,"
			       "\"tag\":\"t\",\"reply\":\"text\"}", &line), 0);
	assert_int_equal(line.kind, LINE_WANT);
	assert_int_equal(line.want.kind, ACTION_FILE_READ);
	assert_string_equal(line.want.subject, "/a b");
	assert_string_equal(line.want.reason, "w\303\274");
	assert_int_equal(line.want.wait_ms, 5000);
	assert_string_equal(line.tag, "t");
	assert_true(line.is_text);
	line_done(&line);
	assert_int_equal(parse("{\"want\":\"net.connect\",\"subject\":\"API.Example.org.:443\"}", &line), 0);
	assert_string_equal(line.want.subject, "api.example.org");
	assert_int_equal(line.want.port, 443);
	line_done(&line);
	assert_int_equal(parse("{\"want\":\"net.connect\",\"subject\":\"[2001:db8::1]:22\"}", &line), 0);
	assert_string_equal(line.want.subject, "2001:db8::1");
	line_done(&line);
	assert_int_equal(parse("{\"explain\":{\"subject\":\"/usr/bin/git\",\"want\":\"exec\","
			       "\"argv\":[\"git\",\"x\"]}}", &line), 0);
	assert_int_equal(line.kind, LINE_EXPLAIN);
	assert_string_equal(line.want.argv[1], "x");
	assert_null(line.want.argv[2]);
	line_done(&line);
	assert_int_equal(parse("{\"seconds\":1,\"wait\":7}", &line), 0);
	assert_int_equal(line.kind, LINE_WAIT);
	assert_int_equal(line.question, 7);
	line_done(&line);
	assert_int_equal(parse("{\"status\":true}", &line), 0);
	assert_int_equal(line.kind, LINE_STATUS);
	line_done(&line);
	assert_int_equal(parse("{\"token\":\"atoll1.A-_9\"}", &line), 0);
	assert_int_equal(line.kind, LINE_TOKEN);
	assert_string_equal(line.token, "atoll1.A-_9");
	line_done(&line);
	assert_int_equal(parse("{\"token\":\"atoll1.A \"}", &line), -EINVAL);
	assert_int_equal(parse("{\"checkpoint\":\"a turn\"}", &line), 0);
	assert_int_equal(line.kind, LINE_CHECKPOINT);
	assert_string_equal(line.checkpoint, "a turn");
	line_done(&line);
	assert_int_equal(parse("{\"checkpoint\":true}", &line), -EINVAL);
	assert_int_equal(parse("{\"checkpoint\":\"\",\"subject\":\"/x\"}", &line), -EINVAL);
	assert_int_equal(parse("{\"token\":\"atoll1.A\",\"status\":true}", &line), -EINVAL);
}

static void everything_else_is_refused(void **state)
{
	static const char *const bad[] = {
		"", "{}", "[]", "1", "{\"want\":\"file.read\"}", "{\"subject\":\"/x\"}",
		"{\"want\":\"file.read\",\"subject\":\"\"}", "{\"want\":\"file.read\",\"subject\":\"x\"}",
		"{\"want\":\"file.apply\",\"subject\":\"/x\"}", "{\"want\":\"file.read\",\"subject\":\"/x\\u0000y\"}",
		"{\"want\":\"file.read\",\"subject\":\"/x\",\"more\":1}",
		"{\"want\":\"file.read\",\"subject\":\"/x\",\"wait\":1}",
		"{\"want\":\"file.read\",\"want\":\"exec\",\"subject\":\"/x\"}",
		"{\"want\":\"file.read\",\"subject\":\"/x\"} {}", "{\"want\":\"file.read\",\"subject\":\"/\xff\"}",
		"{\"want\":\"file.read\",\"subject\":\"/x\",\"argv\":[\"x\"]}",
		"{\"want\":\"exec\",\"subject\":\"/x\",\"argv\":[]}",
		"{\"want\":\"exec\",\"subject\":\"/x\",\"argv\":[1]}",
		"{\"want\":\"file.read\",\"subject\":\"/x\",\"seconds\":0}",
		"{\"want\":\"file.read\",\"subject\":\"/x\",\"seconds\":86401}",
		"{\"want\":\"net.connect\",\"subject\":\"a\"}", "{\"want\":\"net.connect\",\"subject\":\"a:0\"}",
		"{\"want\":\"net.connect\",\"subject\":\"a:65536\"}", "{\"want\":\"net.connect\",\"subject\":\":1\"}",
		"{\"want\":\"net.connect\",\"subject\":\"::1:1\"}", "{\"want\":\"net.connect\",\"subject\":\"[]:1\"}",
		"{\"want\":\"net.connect\",\"subject\":\"]:1\"}", "{\"want\":\"net.connect\",\"subject\":\"a:+1\"}",
		"{\"explain\":{\"explain\":{}}}", "{\"explain\":1}", "{\"wait\":0}", "{\"wait\":4294967296}",
		"{\"wait\":1.5}", "{\"status\":false}", "{\"status\":true,\"subject\":\"/x\"}",
		"{\"want\":\"file.read\",\"subject\":\"/x\",\"reply\":\"xml\"}",
	};
	struct line line;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (parse(bad[i], &line) == 0)
			fail_msg("taken: %s", bad[i]);
}

static void answers_begin_with_the_verdict_and_hold_one_line(void **state)
{
	char *near[] = { (char *)"/a\nb", NULL };
	struct desk_answer answer = { .verdict = DESK_DENIED, .question = 3, .rule = "r",
				      .reason = "no\033[2J\nallowed:", .hint = "h", .near = near };
	struct reply_form form = { .is_text = true };
	cleanup_buf struct buf out;
	const char *text;

	buf_init(&out, 4096);
	reply_put_answer(&out, &form, &answer);
	text = buf_text(&out);
	assert_memory_equal(text, "denied 3: ", 10);
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	assert_null(strchr(text, '\033'));
	buf_reset(&out);
	form = (struct reply_form){ .tag = "\"t" };
	reply_put_answer(&out, &form, &answer);
	text = buf_text(&out);
	assert_memory_equal(text, "{\"verdict\":\"denied\",\"tag\":\"\\\"t\"", 30);
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_asked_is_read),
		cmocka_unit_test(everything_else_is_refused),
		cmocka_unit_test(answers_begin_with_the_verdict_and_hold_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
