/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "egress/credentials/owner-headers.h"

static const struct target_server server = { "a.example", 443, true }, other = { "b.example", 443, true };
static const struct target_server plain = { "a.example", 80, false };
static const char *const set[] = { "a.example", "X-Key", "long enough", "a.example", "x-short", "7", NULL };

static void they_go_to_their_host_over_tls(void **state)
{
	struct owner_headers headers = { 0 };
	struct http1_head head = { .kind = HTTP1_REQUEST, .method = "GET", .target = "/", .minor = 1 };

	assert_int_equal(http1_add(&head, "x-key", "of the sandbox"), 0);
	assert_int_equal(owner_headers_put(&headers, &server, &head), 0);
	assert_int_equal(owner_headers_set(&headers, set), 0);
	assert_int_equal(owner_headers_put(&headers, &other, &head), 0);
	assert_int_equal(owner_headers_put(&headers, &plain, &head), 0);
	assert_string_equal(http1_find(&head, "x-key"), "of the sandbox");
	assert_int_equal(owner_headers_put(&headers, &server, &head), 0);
	assert_string_equal(http1_find(&head, "x-key"), "long enough");
	assert_string_equal(http1_find(&head, "x-short"), "7");
	assert_int_equal(head.field_count, 2);
	assert_true(head.fields[0].is_secret && head.fields[1].is_secret);
	http1_remove(&head, "x-key");
	http1_remove(&head, "x-short");
	owner_headers_done(&headers);
}

static void what_is_wrong_changes_nothing(void **state)
{
	static const char *const wrong[] = { "a.example", "Host", "b", NULL }, *const none[] = { NULL };
	struct owner_headers headers = { 0 };

	assert_int_equal(owner_headers_set(&headers, set), 0);
	assert_int_equal(owner_headers_set(&headers, wrong), -EINVAL);
	assert_string_equal(headers.triples[1], "X-Key");
	assert_int_equal(owner_headers_set(&headers, none), 0);
	assert_null(headers.triples[0]);
	owner_headers_done(&headers);
	owner_headers_done(&headers);
}

static void answers_do_not_bring_them_in(void **state)
{
	struct owner_headers headers = { 0 };
	struct http1_head head = { .kind = HTTP1_RESPONSE, .status = 200, .reason = "OK", .minor = 1 };

	assert_int_equal(owner_headers_set(&headers, set), 0);
	assert_int_equal(http1_add(&head, "x-echo", "it is long enough."), 0);
	assert_int_equal(http1_add(&head, "x-count", "17"), 0);
	assert_int_equal(owner_headers_redact(&headers, &head), 0);
	assert_string_equal(http1_find(&head, "x-echo"), "[redacted by atoll]");
	assert_string_equal(http1_find(&head, "x-count"), "17");
	http1_remove(&head, "x-echo");
	http1_remove(&head, "x-count");
	owner_headers_done(&headers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(they_go_to_their_host_over_tls),
		cmocka_unit_test(what_is_wrong_changes_nothing),
		cmocka_unit_test(answers_do_not_bring_them_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
