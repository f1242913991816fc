/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "os/fd.h"
#include "wire/service.h"

static struct buf out, row;
static struct service_message message;
static const char *problem;

static int setup(void **state)
{
	buf_init(&out, FRAME_MESSAGE_MAX);
	buf_init(&row, FRAME_MESSAGE_MAX);
	return 0;
}

static int teardown(void **state)
{
	buf_done(&out);
	buf_done(&row);
	return 0;
}

static int read_out(const int *fds, size_t fd_count)
{
	struct frame frame;

	assert_int_equal(frame_end(&out), 0);
	assert_int_equal(frame_open(&frame, out.bytes, out.size), 0);
	return service_read(&frame, fds, fd_count, &message, &problem);
}

static void a_request_comes_back(void **state)
{
	const char *const metadata[] = { "a", "1", "b=c", "", NULL };

	service_begin_request(&out, 7, SERVICE_CREATE);
	field_put_string(&out, "key", "e2b_00");
	field_put_u64(&out, "timeout_ms", 300000);
	field_put_strings(&out, "metadata", metadata);
	assert_int_equal(service_end(&out, 0), 0);
	assert_int_equal(read_out(NULL, 0), 0);
	assert_true(message.type == SERVICE_REQUEST && message.ticket == 7 && message.operation == SERVICE_CREATE);
	assert_string_equal(service_string(&message, "key"), "e2b_00");
	assert_int_equal(service_number(&message, "timeout_ms", 1), 300000);
	assert_int_equal(service_number(&message, "internet", 5), 5);
	assert_string_equal(service_strings(&message, "metadata")[2], "b=c");
	assert_null(service_string(&message, "timeout_ms"));
	service_message_done(&message);
}

struct bad_case {
	const char *name;
	void (*put)(void);
	const char *problem;
};

static void put_unknown(void) { field_put_u64(&out, "volume", 1); }
static void put_kind(void) { field_put_u64(&out, "cwd", 1); }
static void put_large(void) { field_put_u64(&out, "rows", 65536); }
static void put_credential_kind(void) { field_put_u64(&out, "token", 1); }
static void put_control(void) { field_put_string(&out, "user", "a\nb"); }
static void put_empty(void) { field_put_string(&out, "user", ""); }
static void put_row(void) { field_put_bytes(&out, "row", "", 0); }
static void put_fd(void) { field_put_fd(&out, "stdin", 0); }

static void put_twice(void)
{
	field_put_string(&out, "user", "a");
	field_put_string(&out, "user", "a");
}

static void put_long(void)
{
	char text[258];

	memset(text, 'a', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	field_put_string(&out, "tag", text);
}

static void put_vector(void)
{
	static const char *strings[1026];

	for (size_t i = 0; i + 1 < ARRAY_SIZE(strings); i++)
		strings[i] = "A=1";
	field_put_strings(&out, "env", strings);
}

static void a_wrong_value_is_refused_by_name(void **state)
{
	static const struct bad_case cases[] = {
		{ "unknown", put_unknown, "unknown value" }, { "kind", put_kind, "cwd" }, { "large", put_large,
		"rows" },
		{ "credential", put_credential_kind, "token" }, { "control", put_control, "user" },
		{ "empty", put_empty, "user" }, { "twice", put_twice, "user" }, { "long", put_long, "tag" },
		{ "vector", put_vector, "env" }, { "row", put_row, "unknown value" }, { "fd", put_fd, "stdin" },
	};
	const char *const argv[] = { "true", NULL };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		service_begin_request(&out, 1, SERVICE_EXEC);
		field_put_string(&out, "sandbox", "abc");
		field_put_strings(&out, "argv", argv);
		/* Without the wrong value it would be fine. */
		assert_int_equal(service_end(&out, 0), 0);
		cases[i].put();
		assert_int_equal(service_end(&out, 0), -EBADMSG);
		assert_int_equal(read_out(NULL, 0), -EBADMSG);
		assert_string_equal(problem, cases[i].problem);
	}
}

static void what_is_required_is_missed(void **state)
{
	service_begin_request(&out, 1, SERVICE_KILL);
	assert_int_equal(read_out(NULL, 0), -EBADMSG);
	assert_string_equal(problem, "sandbox");
	service_begin_request(&out, 1, SERVICE_EXEC);
	field_put_string(&out, "sandbox", "abc");
	field_put_strings(&out, "argv", NULL);
	assert_int_equal(read_out(NULL, 0), -EBADMSG);
	assert_string_equal(problem, "argv");
}

static void an_id_is_a_label(void **state)
{
	static const char *const bad[] = { "", "A", "../x", "a-b", "a.b", "a/b", "é",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		service_begin_request(&out, 1, SERVICE_KILL);
		field_put_string(&out, "sandbox", bad[i]);
		assert_int_equal(service_end(&out, 0), -EBADMSG);
	}
}

static void pairs_and_triples_are_whole(void **state)
{
	const char *const three[] = { "a", "b", "c", NULL };

	service_begin_request(&out, 1, SERVICE_CREATE);
	field_put_strings(&out, "rules", three);
	assert_int_equal(service_end(&out, 0), 0);
	service_begin_request(&out, 1, SERVICE_CREATE);
	field_put_strings(&out, "metadata", three);
	assert_int_equal(service_end(&out, 0), -EBADMSG);
	service_begin_request(&out, 1, SERVICE_CREATE);
	field_put_strings(&out, "rules", three + 1);
	assert_int_equal(service_end(&out, 0), -EBADMSG);
}

static void heads_are_checked(void **state)
{
	service_begin_request(&out, 0, SERVICE_WHOAMI);
	assert_int_equal(read_out(NULL, 0), -EBADMSG);
	service_begin_request(&out, 1, SERVICE_OPERATION_COUNT);
	assert_int_equal(read_out(NULL, 0), -EBADMSG);
	service_begin_request(&out, 1, 0);
	assert_int_equal(read_out(NULL, 0), -EBADMSG);
	service_begin_reply(&out, 1, SERVICE_WHOAMI, 302);
	assert_int_equal(read_out(NULL, 0), -EBADMSG);
	service_begin_event(&out, SERVICE_EVENT_COUNT);
	assert_int_equal(read_out(NULL, 0), -EBADMSG);
	frame_begin(&out, SERVICE_EVENT + 1);
	assert_int_equal(read_out(NULL, 0), -EBADMSG);
	assert_string_equal(problem, "head");
	service_begin_ready(&out);
	assert_int_equal(read_out(NULL, 0), 0);
	assert_int_equal(message.type, SERVICE_READY);
}

static void every_operation_has_a_rule(void **state)
{
	for (uint32_t i = 1; i < SERVICE_OPERATION_COUNT; i++) {
		const struct service_rule *rule = service_rule(i);

		assert_true(rule && rule->name && rule->credentials && rule->request && rule->reply);
	}
	assert_null(service_rule(0));
	assert_null(service_rule(SERVICE_OPERATION_COUNT));
	for (uint32_t i = 1; i < SERVICE_EVENT_COUNT; i++)
		assert_non_null(service_event_fields(i));
}

static void rows_come_back(void **state)
{
	struct service_message read;
	size_t at = 0;

	service_begin_reply(&out, 3, SERVICE_LIST, 200);
	for (uint64_t i = 0; i < 3; i++) {
		service_begin_row(&row);
		field_put_string(&row, "sandbox", "abc");
		field_put_u64(&row, "cpu_count", i);
		service_put_row(&out, &row);
	}
	field_put_string(&out, "next", "3");
	assert_int_equal(service_end(&out, 0), 0);
	assert_int_equal(read_out(NULL, 0), 0);
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(service_next_row(&message, &at, &read), 1);
		assert_int_equal(service_number(&read, "cpu_count", 9), i);
		assert_string_equal(service_string(&read, "sandbox"), "abc");
		service_message_done(&read);
	}
	assert_int_equal(service_next_row(&message, &at, &read), 0);
	service_message_done(&message);
	/* A row is checked as all else. */
	service_begin_reply(&out, 3, SERVICE_LIST, 200);
	service_begin_row(&row);
	field_put_string(&row, "sandbox", "../x");
	service_put_row(&out, &row);
	assert_int_equal(service_end(&out, 0), -EBADMSG);
}

static void errors_have_the_values_of_errors(void **state)
{
	service_begin_reply(&out, 3, SERVICE_LIST, 404);
	field_put_string(&out, "message", "no such sandbox");
	assert_int_equal(service_end(&out, 0), 0);
	service_begin_reply(&out, 3, SERVICE_LIST, 404);
	field_put_string(&out, "next", "1");
	assert_int_equal(service_end(&out, 0), -EBADMSG);
	service_begin_reply(&out, 3, SERVICE_LIST, 200);
	field_put_string(&out, "message", "fine");
	assert_int_equal(service_end(&out, 0), -EBADMSG);
}

static void each_descriptor_is_meant_once(void **state)
{
	int fds[2] = { fd_memfd_new("a"), fd_memfd_new("b") }, taken;

	service_begin_reply(&out, 3, SERVICE_EXEC, 200);
	field_put_fd(&out, "stdin", 0);
	field_put_fd(&out, "stdout", 1);
	assert_int_equal(service_end(&out, 2), 0);
	assert_int_equal(service_end(&out, 1), -EBADMSG);
	assert_int_equal(service_end(&out, 3), -EBADMSG);
	assert_int_equal(read_out(fds, 2), 0);
	taken = service_take_fd(&message, "stdout");
	assert_int_equal(taken, fds[1]);
	assert_int_equal(service_take_fd(&message, "stdout"), -ENOENT);
	assert_int_equal(service_take_fd(&message, "stderr"), -ENOENT);
	service_message_done(&message);
	assert_int_equal(fcntl(fds[0], F_GETFD), -1);
	assert_int_not_equal(fcntl(taken, F_GETFD), -1);
	close(taken);
	service_begin_reply(&out, 3, SERVICE_EXEC, 200);
	field_put_fd(&out, "stdin", 0);
	field_put_fd(&out, "stdout", 0);
	assert_int_equal(service_end(&out, 1), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_request_comes_back, setup, teardown),
		cmocka_unit_test_setup_teardown(a_wrong_value_is_refused_by_name, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_required_is_missed, setup, teardown),
		cmocka_unit_test_setup_teardown(an_id_is_a_label, setup, teardown),
		cmocka_unit_test_setup_teardown(pairs_and_triples_are_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(heads_are_checked, setup, teardown),
		cmocka_unit_test_setup_teardown(every_operation_has_a_rule, setup, teardown),
		cmocka_unit_test_setup_teardown(rows_come_back, setup, teardown),
		cmocka_unit_test_setup_teardown(errors_have_the_values_of_errors, setup, teardown),
		cmocka_unit_test_setup_teardown(each_descriptor_is_meant_once, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
