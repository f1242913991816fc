/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "service/protocol/connect.h"
#include "service/protocol/process.h"

static struct service_message *start(const char *body, int expected, bool *ret_pty, char why[PROCESS_WHY_SIZE])
{
	struct service_message *message = calloc(1, sizeof *message);
	static struct buf out;
	const char *problem;
	struct frame frame;

	buf_done(&out);
	buf_init(&out, 1 << 16);
	service_begin_request(&out, 1, SERVICE_EXEC);
	field_put_string(&out, "sandbox", "abc");
	assert_int_equal(process_read_start(body, strlen(body), &out, ret_pty, why), expected);
	if (expected == 0) {
		assert_int_equal(service_end(&out, 0), 0);
		assert_int_equal(frame_open(&frame, out.bytes, out.size), 0);
		assert_int_equal(service_read(&frame, NULL, 0, message, &problem), 0);
	}
	return message;
}

static void test_start(void **state)
{
	char why[PROCESS_WHY_SIZE];
	bool has_pty;
	struct service_message *message =
		start("{\"process\":{\"cmd\":\"/bin/"
		      "bash\",\"args\":[\"-l\",\"-c\",\"ls\"],\"envs\":{\"A\":\"b\"},\"cwd\":\"/tmp\"},"
		      "\"tag\":\"t\",\"stdin\":false}",
		      0, &has_pty, why);

	assert_false(has_pty);
	assert_string_equal(service_strings(message, "argv")[3], "ls");
	assert_string_equal(service_strings(message, "env")[0], "A=b");
	assert_string_equal(service_string(message, "cwd"), "/tmp");
	assert_string_equal(service_string(message, "tag"), "t");
	assert_int_equal(service_number(message, "stdin", 1), 0);
	service_message_done(message);
	free(message);
	message = start("{\"process\":{\"cmd\":\"sh\"},\"pty\":{\"size\":{\"cols\":100,\"rows\":30}}}", 0, &has_pty,
			why);
	assert_true(has_pty);
	assert_int_equal(service_number(message, "columns", 0), 100);
	assert_int_equal(service_number(message, "stdin", 1), 1);
	service_message_done(message);
	free(message);
	free(start("{}", -EINVAL, &has_pty, why));
	free(start("{\"process\":{\"cmd\":\"\"}}", -EINVAL, &has_pty, why));
	free(start("{\"process\":{\"cmd\":\"a\",\"args\":[1]}}", -EINVAL, &has_pty, why));
}

static void test_selectors_and_input(void **state)
{
	static const char input_body[] = "{\"process\":{\"pid\":7},\"input\":{\"stdin\":\"aGk=\"}}";
	static const char signal_body[] = "{\"process\":{\"tag\":\"x\"},\"signal\":\"SIGNAL_SIGTERM\"}";
	struct process_selector selector;
	struct process_input input;
	char why[PROCESS_WHY_SIZE];
	uint32_t signal;

	assert_int_equal(process_read_input(input_body, sizeof input_body - 1, 100, &input, why), 0);
	assert_int_equal(input.selector.pid, 7);
	assert_false(input.is_for_pty);
	assert_string_equal(buf_text(&input.bytes), "hi");
	buf_done(&input.bytes);
	assert_int_equal(process_read_input(input_body, sizeof input_body - 1, 1, &input, why), -EINVAL);
	assert_int_equal(process_read_signal(signal_body, sizeof signal_body - 1, &selector, &signal, why), 0);
	assert_int_equal(signal, 15);
	assert_string_equal(selector.tag, "x");
	assert_int_equal(process_read_selector("{}", 2, &selector, why), -EINVAL);
}

static const char *payload(struct buf *out)
{
	struct connect_envelope envelope;
	static char text[256];
	size_t used;

	assert_int_equal(connect_envelope_read(out->bytes, out->size, 1000, &envelope, &used), 1);
	assert_int_equal(used, out->size);
	assert_in_range(envelope.size, 1, sizeof text - 1);
	memcpy(text, envelope.payload, envelope.size);
	text[envelope.size] = 0;
	buf_reset(out);
	return text;
}

static void test_events(void **state)
{
	cleanup_buf struct buf out;

	buf_init(&out, 1000);
	process_put_started(&out, 7);
	assert_string_equal(payload(&out), "{\"event\":{\"start\":{\"pid\":7}}}");
	process_put_data(&out, PROCESS_STDERR, "hi\n", 3);
	assert_string_equal(payload(&out), "{\"event\":{\"data\":{\"stderr\":\"aGkK\"}}}");
	process_put_keepalive(&out);
	assert_string_equal(payload(&out), "{\"event\":{\"keepalive\":{}}}");
	process_put_ended(&out, &(struct process_end){ .exit = 3 });
	assert_string_equal(payload(&out),
			    "{\"event\":{\"end\":{\"exitCode\":3,\"exited\":true,\"status\":\"exit status 3\","
			    "\"error\":\"exit status 3\"}}}");
	process_put_ended(&out, &(struct process_end){ .signal = 9 });
	assert_string_equal(payload(&out),
			    "{\"event\":{\"end\":{\"exitCode\":-1,\"exited\":false,\"status\":\"signal: killed\","
			    "\"error\":\"signal: killed\"}}}");
	process_put_ended(&out, &(struct process_end){ .exit = 0 });
	assert_string_equal(payload(&out),
			    "{\"event\":{\"end\":{\"exitCode\":0,\"exited\":true,\"status\":\"exit status 0\"}}}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_start),
		cmocka_unit_test(test_selectors_and_input),
		cmocka_unit_test(test_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
