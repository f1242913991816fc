/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/str.h"
#include "service/protocol/control.h"

/* A frame that was written, read as the launcher will. */
static struct service_message *read_back(struct buf *out, size_t fd_count)
{
	struct service_message *message = calloc(1, sizeof *message);
	const char *problem = NULL;
	struct frame frame;

	assert_int_equal(service_end(out, fd_count), 0);
	assert_int_equal(frame_open(&frame, out->bytes, out->size), 0);
	assert_int_equal(service_read(&frame, NULL, 0, message, &problem), 0);
	return message;
}

static const struct route *route(const char *method, const char *path)
{
	static struct route_match match;

	assert_int_equal(route_find(ROUTE_API, method, path, &match), 0);
	return match.route;
}

static void test_create_as_the_newest_client_sends_it(void **state)
{
	static const char body[] =
		"{\"templateID\":\"base\",\"timeout\":60,\"metadata\":{\"a\":\"b\"},\"envVars\":{\"K\":\"V\"},"
		"\"allow_internet_access\":false,\"autoPause\":true,\"autoResume\":{\"enabled\":true},\"later\":[],"
		"\"network\":{\"allowOut\":[\"*.x.example\"],\"allowPublicTraffic\":false,"
		"\"rules\":{\"x.example\":[{\"transform\":{\"headers\":{\"H\":\"v\"}}}]}}}";
	char why[CONTROL_WHY_SIZE];
	cleanup_buf struct buf out;
	struct service_message *message;

	buf_init(&out, 1 << 16);
	service_begin_request(&out, 1, SERVICE_CREATE);
	assert_int_equal(control_read_body(route("POST", "/v2/sandboxes"), body, sizeof body - 1, &out, why), 0);
	message = read_back(&out, 0);
	assert_string_equal(service_string(message, "template"), "base");
	assert_int_equal(service_number(message, "timeout_ms", 0), 60000);
	assert_int_equal(service_number(message, "internet", 1), 0);
	assert_int_equal(service_number(message, "public_traffic", 1), 0);
	assert_int_equal(service_number(message, "auto_pause", 0), 1);
	assert_int_equal(service_number(message, "auto_resume", 0), 1);
	assert_string_equal(service_strings(message, "metadata")[1], "b");
	assert_string_equal(service_strings(message, "env")[0], "K=V");
	assert_string_equal(service_strings(message, "allow_out")[0], "*.x.example");
	assert_string_equal(service_strings(message, "rules")[2], "v");
	service_message_done(message);
	free(message);
}

static void test_defaults_are_those_of_the_path(void **state)
{
	char why[CONTROL_WHY_SIZE];
	struct service_message *message;
	cleanup_buf struct buf out;

	buf_init(&out, 1 << 16);
	service_begin_request(&out, 1, SERVICE_CREATE);
	assert_int_equal(control_read_body(route("POST", "/sandboxes"), "{}", 2, &out, why), 0);
	message = read_back(&out, 0);
	assert_int_equal(service_number(message, "timeout_ms", 0), 15000);
	service_message_done(message);
	free(message);
}

static void test_refuses_by_name(void **state)
{
	static const struct {
		const char *body, *why;
		int result;
	} rows[] = {
		{ "{\"timeout\":\"soon\"}", "\"timeout\" is no whole number from 0 on", -EINVAL },
		{ "{\"metadata\":{\"a\":1}}", "\"a\" is no string", -EINVAL },
		{ "{\"volumeMounts\":[{}]}", "\"volumeMounts\" has an entry without \"name\" or \"path\"", -EINVAL },
		{ "{\"iam\":{\"tokens\":{}}}", "\"iam\" is not served here", -ENOTSUP },
		{ "{\"network\":{\"egressProxy\":{\"address\":\"a\"}}}", "\"egressProxy\" is not served here",
		  -ENOTSUP },
		{ "{\"mcp\":{\"a\":{}}}", "\"mcp\" is not served here", -ENOTSUP },
		{ "{\"later\":[1]}", "\"later\" is not served here", -ENOTSUP },
		{ "{\"network\":{\"httpsPorts\":[443]}}", "\"httpsPorts\" is not served here", -ENOTSUP },
	};
	char why[CONTROL_WHY_SIZE];
	cleanup_buf struct buf out;

	buf_init(&out, 1 << 16);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		service_begin_request(&out, 1, SERVICE_CREATE);
		assert_int_equal(control_read_body(route("POST", "/v2/sandboxes"), rows[i].body, strlen(rows[i].body),
						   &out, why),
				 rows[i].result);
		assert_string_equal(why, rows[i].why);
	}
}

static void test_query_of_a_list(void **state)
{
	char why[CONTROL_WHY_SIZE];
	struct service_message *message;
	cleanup_buf struct buf out;

	buf_init(&out, 1 << 16);
	service_begin_request(&out, 1, SERVICE_LIST);
	assert_int_equal(
		control_read_query(
			route("GET", "/v2/sandboxes"),
			"metadata=a%252520b%3Dc&state=running%2Cpaused&limit=100&nextToken=x&order=asc&more=1", &out,
			why),
		0);
	message = read_back(&out, 0);
	assert_string_equal(service_strings(message, "metadata")[0], "a b");
	assert_string_equal(service_strings(message, "states")[1], "paused");
	assert_int_equal(service_number(message, "limit", 0), SERVICE_ROWS_MAX);
	assert_string_equal(service_string(message, "next"), "x");
	assert_int_equal(service_number(message, "ascending", 0), 1);
	service_message_done(message);
	free(message);
	service_begin_request(&out, 1, SERVICE_LIST);
	assert_int_equal(control_read_query(route("GET", "/v2/sandboxes"), "limit=0", &out, why), -EINVAL);
}

static void test_limit_of_logs_is_for_all_pages(void **state)
{
	const struct route *logs = route("GET", "/v2/sandboxes/a/logs");
	char why[CONTROL_WHY_SIZE] = "";
	size_t limit = 1;

	assert_int_equal(control_read_limit(logs, "limit=65", &limit, why), 0);
	assert_int_equal(limit, 65);
	assert_int_equal(control_read_limit(logs, "limit=4000000", &limit, why), 0);
	assert_int_equal(limit, 1000);
	assert_int_equal(control_read_limit(logs, NULL, &limit, why), 0);
	assert_int_equal(limit, 1000);
	assert_int_equal(control_read_limit(logs, "limit=0", &limit, why), -EINVAL);
	assert_non_null(strstr(why, "limit"));
	assert_int_equal(control_read_limit(route("GET", "/v2/sandboxes"), "limit=5", &limit, why), 0);
	assert_int_equal(limit, 0);
}

static void test_reply_with_rows(void **state)
{
	struct service_message *message;
	cleanup_buf struct buf out, row;
	struct control_reply reply;

	buf_init(&out, 1 << 16);
	buf_init(&row, 1 << 16);
	control_reply_init(&reply, 1 << 16);
	service_begin_reply(&out, 1, SERVICE_METRICS, 200);
	for (int i = 0; i < 2; i++) {
		service_begin_row(&row);
		field_put_string(&row, "sandbox", i ? "b" : "a");
		field_put_u64(&row, "time_ms", 1000);
		field_put_u64(&row, "cpu_used_milli", 1500);
		service_put_row(&out, &row);
	}
	message = read_back(&out, 0);
	control_begin_reply(ROUTE_METRICS_MAP, &reply);
	assert_int_equal(control_put_reply(ROUTE_METRICS_MAP, message, &reply), 0);
	control_end_reply(ROUTE_METRICS_MAP, &reply);
	assert_int_equal(reply.rows, 2);
	assert_non_null(strstr(buf_text(&reply.text),
			       "{\"sandboxes\":{\"a\":{\"timestamp\":\"1970-01-01T00:00:01.000Z\","
			       "\"timestampUnix\":1,"));
	assert_non_null(strstr(buf_text(&reply.text), "\"cpuUsedPct\":1.5,"));
	assert_non_null(strstr(buf_text(&reply.text), "},\"b\":{"));
	control_reply_done(&reply);
	service_message_done(message);
	free(message);
}

/* `e2b sandbox logs` parses each line as JSON and wants a level in it. */
static void test_old_logs_have_an_object_in_each_line(void **state)
{
	struct service_message *message;
	cleanup_buf struct buf out, row;
	struct control_reply reply;

	buf_init(&out, 1 << 16);
	buf_init(&row, 1 << 16);
	control_reply_init(&reply, 1 << 16);
	service_begin_reply(&out, 1, SERVICE_LOGS, 200);
	service_begin_row(&row);
	field_put_u64(&row, "time_ms", 1000);
	field_put_string(&row, "level", "warn");
	field_put_string(&row, "message", "a \"b\"");
	service_put_row(&out, &row);
	message = read_back(&out, 0);
	control_begin_reply(ROUTE_LOGS_OLD, &reply);
	assert_int_equal(control_put_reply(ROUTE_LOGS_OLD, message, &reply), 0);
	control_end_reply(ROUTE_LOGS_OLD, &reply);
	assert_string_equal(buf_text(&reply.text),
			    "{\"logs\":[{\"timestamp\":\"1970-01-01T00:00:01.000Z\",\"line\":"
			    "\"{\\\"level\\\":\\\"warn\\\",\\\"logger\\\":\\\"atoll\\\","
			    "\\\"message\\\":\\\"a \\\\\\\"b\\\\\\\"\\\"}\"}],\"logEntries\":["
			    "{\"timestamp\":\"1970-01-01T00:00:01.000Z\",\"level\":\"warn\","
			    "\"message\":\"a \\\"b\\\"\",\"fields\":{}}]}");
	control_reply_done(&reply);
	service_message_done(message);
	free(message);
}

static void test_errors_have_a_code_and_a_message(void **state)
{
	cleanup_buf struct buf out;

	buf_init(&out, 1000);
	control_put_error(&out, 404, "", NULL);
	assert_string_equal(buf_text(&out), "{\"code\":404,\"message\":\"the request failed\"}");
	buf_reset(&out);
	control_put_unreachable(&out, 502, "abc", 80, "closed");
	assert_string_equal(buf_text(&out),
			    "{\"sandboxId\":\"abc\",\"message\":\"closed\",\"port\":80,\"code\":502}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_create_as_the_newest_client_sends_it),
		cmocka_unit_test(test_defaults_are_those_of_the_path),
		cmocka_unit_test(test_refuses_by_name),
		cmocka_unit_test(test_query_of_a_list),
		cmocka_unit_test(test_reply_with_rows),
		cmocka_unit_test(test_limit_of_logs_is_for_all_pages),
		cmocka_unit_test(test_old_logs_have_an_object_in_each_line),
		cmocka_unit_test(test_errors_have_a_code_and_a_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
