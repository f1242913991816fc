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
#include "service/protocol/routes.h"

static void test_paths_of_every_release(void **state)
{
	static const struct {
		const char *method, *path;
		enum service_operation operation;
	} rows[] = {
		{ "POST", "/v2/sandboxes", SERVICE_CREATE },
		{ "POST", "/sandboxes", SERVICE_CREATE },
		{ "POST", "/v2/sandboxes/abc/connect", SERVICE_CONNECT },
		{ "POST", "/sandboxes/abc/resume", SERVICE_CONNECT },
		{ "GET", "/sandboxes/metrics", SERVICE_METRICS },
		{ "GET", "/sandboxes/abc", SERVICE_GET },
		{ "GET", "/sandboxes", SERVICE_LIST },
		{ "GET", "/v2/sandboxes", SERVICE_LIST },
		{ "DELETE", "/sandboxes/abc", SERVICE_KILL },
		{ "DELETE", "/templates/a%3Ab", SERVICE_TEMPLATE_DELETE },
	};
	struct route_match match;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(route_find(ROUTE_API, rows[i].method, rows[i].path, &match), 0);
		assert_int_equal(match.route->operation, rows[i].operation);
	}
	assert_string_equal(match.values[0].key, "template");
	assert_string_equal(match.values[0].text, "a:b");
}

static void test_ids_with_path_characters(void **state)
{
	static const char *const bad[] = { "/sandboxes/..",    "/sandboxes/a%2Fb", "/sandboxes/%2e%2e",
					   "/sandboxes/a%00",  "/sandboxes/ABC",   "/sandboxes/",
					   "/sandboxes/a%0a",  "/sandboxes/a//",   "/templates/..",
					   "/templates/a%2fb", "sandboxes/a",	   "",
					   "/sandboxes/abc/",  "//sandboxes" };
	struct route_match match;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_true(route_find(ROUTE_API, "GET", bad[i], &match) < 0);
		assert_true(route_find(ROUTE_API, "DELETE", bad[i], &match) < 0);
	}
}

static void test_methods_and_sides(void **state)
{
	struct route_match match;

	assert_int_equal(route_find(ROUTE_API, "PATCH", "/sandboxes/abc", &match), -ENOTSUP);
	assert_int_equal(route_find(ROUTE_API, "GET", "/files", &match), -ENOENT);
	assert_int_equal(route_find(ROUTE_ENVD, "GET", "/sandboxes", &match), -ENOENT);
	assert_int_equal(route_find(ROUTE_ENVD, "POST", "/init", &match), -ENOENT);
	assert_int_equal(route_find(ROUTE_ENVD, "POST", "/process.Process/Start", &match), 0);
	assert_true(match.route->flags & ROUTE_STREAMED);
}

/* What the front lets through unsigned is what the launcher takes unsigned. */
static void test_credentials_are_those_of_the_operations(void **state)
{
	const struct route *route;

	for (size_t i = 0; (route = route_at(i)); i++) {
		/* The interpreter's operation looks at two kinds of tokens itself. */
		if (route->handler == ROUTE_UNSERVED || route->operation == SERVICE_HEALTH ||
		    route->operation == SERVICE_INTERPRET)
			continue;
		assert_int_equal(route->credentials, service_rule(route->operation)->credentials);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths_of_every_release),
		cmocka_unit_test(test_ids_with_path_characters),
		cmocka_unit_test(test_methods_and_sides),
		cmocka_unit_test(test_credentials_are_those_of_the_operations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
