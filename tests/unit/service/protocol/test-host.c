/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "service/protocol/host.h"

static const char *const names[] = { "atoll.example", NULL };

struct row {
	struct host_said said;
	int result;
	enum host_kind kind;
	const char *sandbox;
	unsigned port;
};

static void test_routes_by_host_and_headers(void **state)
{
	static const struct row rows[] = {
		{ { "localhost:3000" }, 0, HOST_API },
		{ { "127.0.0.1" }, 0, HOST_API },
		{ { "[::1]:80" }, 0, HOST_API },
		{ { "api.atoll.example" }, 0, HOST_API },
		{ { "LOCALHOST.", "abc", "49983" }, 0, HOST_SANDBOX, "abc", 49983 },
		{ { "10.1.2.3:1", "abc1", "80" }, 0, HOST_SANDBOX, "abc1", 80 },
		{ { "sandbox.atoll.example", "abc", "80" }, 0, HOST_SANDBOX, "abc", 80 },
		{ { "8080-abc.localhost:3000" }, 0, HOST_SANDBOX, "abc", 8080 },
		{ { "8080-abc.atoll.example" }, 0, HOST_SANDBOX, "abc", 8080 },
		/* The name is stronger than headers that a page could add. */
		{ { "8080-abc.localhost", "other", "1" }, 0, HOST_SANDBOX, "abc", 8080 },
		{ { "localhost", "abc", NULL }, -EINVAL },
		{ { "localhost", NULL, "80" }, -EINVAL },
		{ { "localhost", "ABC", "80" }, -EINVAL },
		{ { "localhost", "../x", "80" }, -EINVAL },
		{ { "localhost", "", "80" }, -EINVAL },
		{ { "localhost", "abc", "0" }, -EINVAL },
		{ { "localhost", "abc", "65536" }, -EINVAL },
		{ { "localhost", "abc", "+80" }, -EINVAL },
		{ { NULL }, -EINVAL },
		{ { "" }, -EINVAL },
		{ { "localhost:x" }, -EINVAL },
		{ { "user@localhost" }, -EINVAL },
		{ { "evil.example" }, -EPERM },
		{ { "localhost.evil.example" }, -EPERM },
		{ { "8080-abc.evil.example" }, -EPERM },
		{ { "notatoll.example" }, -EPERM },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct host_target target;
		const char *why = NULL;

		assert_int_equal(host_route(&rows[i].said, names, &target, &why), rows[i].result);
		if (rows[i].result < 0) {
			assert_non_null(why);
			continue;
		}
		assert_int_equal(target.kind, rows[i].kind);
		if (rows[i].sandbox) {
			assert_string_equal(target.sandbox, rows[i].sandbox);
			assert_int_equal(target.port, rows[i].port);
		}
	}
}

static void test_id_is_bounded(void **state)
{
	char id[HOST_ID_SIZE + 1];

	memset(id, 'a', sizeof id);
	id[HOST_ID_SIZE - 1] = 0;
	assert_true(host_id_is_valid(id));
	id[HOST_ID_SIZE - 1] = 'a';
	id[HOST_ID_SIZE] = 0;
	assert_false(host_id_is_valid(id));
}

static void test_origins(void **state)
{
	static const struct {
		const char *origin, *host;
		bool is_ours;
	} rows[] = {
		{ "http://localhost:5173", "127.0.0.1:1", true },
		{ "https://atoll.example", "127.0.0.1:1", true },
		{ "http://127.0.0.1:1", "localhost", true },
		{ "http://127.8.9.1", "localhost", true },
		{ "http://[::1]:80", "localhost", true },
		{ "http://192.0.2.7:3000", "192.0.2.7:49982", true },
		{ "http://[2001:db8::1]", "[2001:db8::1]:49982", true },
		{ "http://192.0.2.7:3000", "127.0.0.1:49982", false },
		{ "http://192.0.2.7", "192.0.2.8", false },
		{ "http://[2001:db8::1]", "[::1]", false },
		{ "http://[::ffff:127.0.0.1]", "localhost", false },
		{ "http://0.0.0.0", "127.0.0.1", false },
		{ "http://128.0.0.1", NULL, false },
		{ "http://8080-abc.localhost:5173", "localhost", false },
		{ "http://8080-abc.localhost", "8080-abc.localhost", false },
		{ "https://evil.example", "evil.example", false },
		{ "null", "localhost", false },
		{ "http://localhost@evil.example", "localhost", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(host_origin_is_ours(rows[i].origin, rows[i].host, names), rows[i].is_ours);
}

static void test_pages_without_an_origin(void **state)
{
	static const struct {
		struct host_page page;
		bool is_ours;
	} rows[] = {
		{ { NULL }, true },
		{ { .site = "same-origin", .mode = "no-cors" }, true },
		{ { .site = "none", .mode = "navigate" }, true },
		{ { .site = "cross-site", .mode = "navigate" }, true },
		{ { .site = "cross-site", .mode = "no-cors" }, false },
		{ { .site = "same-site", .mode = "no-cors" }, false },
		{ { .site = "cross-site" }, false },
		{ { .site = "", .mode = "cors" }, false },
		{ { .site = "cross-site", .mode = "no-cors", .referer = "http://localhost:3000/a?b" }, true },
		{ { .site = "cross-site", .mode = "no-cors", .referer = "http://localhost:3000" }, true },
		{ { .site = "cross-site", .mode = "no-cors", .referer = "https://evil.example/localhost" }, false },
		{ { .site = "cross-site", .mode = "no-cors", .referer = "http://localhost@evil.example/" }, false },
		{ { .site = "cross-site", .mode = "no-cors", .referer = "" }, false },
		{ { .origin = "http://localhost:1", .site = "cross-site", .mode = "cors" }, true },
		{ { .origin = "https://evil.example", .site = "same-origin", .mode = "navigate" }, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(host_page_is_ours(&rows[i].page, "localhost", names), rows[i].is_ours);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_routes_by_host_and_headers),
		cmocka_unit_test(test_id_is_bounded),
		cmocka_unit_test(test_origins),
		cmocka_unit_test(test_pages_without_an_origin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
