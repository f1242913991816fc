/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "egress/target.h"

static const struct target_server server = { "api.example.org", 443, true };

static void assert_forms(const char *text, const char *first, const char *second, const char *third)
{
	const char *const wanted[] = { first, second, third };
	struct target target;
	const char *problem = NULL;
	int r = target_parse("GET", text, &server, &target, &problem);
	size_t count = 0;

	if (r != 0)
		fail_msg("%s: %s", text, problem);
	for (size_t i = 0; i < ARRAY_SIZE(wanted) && wanted[i]; i++, count++) {
		assert_true(i < target.form_count);
		assert_string_equal(target.forms[i], wanted[i]);
	}
	assert_int_equal(target.form_count, count);
	target_done(&target);
}

static void assert_refused(const char *method, const char *text)
{
	struct target target;
	const char *problem = NULL;

	if (target_parse(method, text, &server, &target, &problem) >= 0)
		fail_msg("%s was taken as %s", text, target.forms[0]);
	assert_non_null(problem);
}

static void test_forms(void **state)
{
	assert_forms("/", "/", NULL, NULL);
	assert_forms("/v1/messages?beta=true", "/v1/messages", NULL, NULL);
	assert_forms("/v1/%6Dessages", "/v1/messages", NULL, NULL);
	assert_forms("/v1/%7euser", "/v1/~user", NULL, NULL);
	assert_forms("/a%20b", "/a b", NULL, NULL);
	assert_forms("/%C3%A4", "/\xc3\xa4", NULL, NULL);
	assert_forms("/a//b/", "/a//b/", "/a/b/", NULL);
	assert_forms("/v1/../admin", "/v1/../admin", "/admin", NULL);
	assert_forms("/v1/./x/.", "/v1/./x/.", "/v1/x/", NULL);
	assert_forms("/../../x", "/../../x", "/x", NULL);
	assert_forms("/v1/%2e%2e/admin", "/v1/../admin", "/admin", NULL);
	assert_forms("/v1/.%2E/admin", "/v1/../admin", "/admin", NULL);
	assert_forms("/@scope%2fname", "/@scope%2Fname", "/@scope/name", NULL);
	assert_forms("/v1/a%2f..%2f..%2fadmin", "/v1/a%2F..%2F..%2Fadmin", "/admin", NULL);
	assert_forms("/v1/..%5cadmin", "/v1/..%5Cadmin", "/admin", NULL);
	assert_forms("/v1/..\\admin", "/v1/..\\admin", "/admin", NULL);
	assert_forms("/v1/x;a=1/y;b", "/v1/x;a=1/y;b", "/v1/x/y", NULL);
	assert_forms("/v1/..;/admin", "/v1/..;/admin", "/admin", NULL);
	assert_forms("/v1/%252e%252e/admin", "/v1/%252e%252e/admin", "/admin", NULL);
	assert_forms("/v1/%25252e%25252e/admin", "/v1/%25252e%25252e/admin", "/admin", NULL);
	assert_forms("/a//b%2fc", "/a//b%2Fc", "/a/b%2Fc", "/a/b/c");
	assert_forms("/x/..", "/x/..", "/", NULL);
	assert_forms("/x/y/..", "/x/y/..", "/x/", NULL);
}

static void test_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"v1",
		"*",
		"?x",
		"/%",
		"/%4",
		"/%zz",
		"/a%00b",
		"/a%0d%0aHost:x",
		"/a%7f",
		"/a b",
		"/a\tb",
		"/a#b",
		"/a?b#c",
		"/%c0%ae%c0%ae/x",
		"/%e0%80%af",
		"/a%2525252541",
		"https://",
		"ftp://api.example.org/",
		"//api.example.org/x#",
		"http://api.example.org/",
		"https://evil.example/",
		"https://api.example.org:444/",
		"https://api.example.org@evil.example/",
		"https://u:p@api.example.org/",
		"https://api.example.org.evil/",
		"https://api.example.org:/",
		"https://api.example.org:0443x/",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_refused("GET", bad[i]);
	assert_refused("POST", "*");
}

static void test_too_long(void **state)
{
	char *text = malloc(TARGET_PATH_SIZE + 1);

	memset(text, 'a', TARGET_PATH_SIZE);
	text[0] = '/';
	text[TARGET_PATH_SIZE] = 0;
	assert_refused("GET", text);
	text[TARGET_PATH_SIZE - 1] = 0;
	assert_forms(text, text, NULL, NULL);
	free(text);
}

static void test_absolute_form(void **state)
{
	struct target target;
	const char *problem;

	assert_int_equal(target_parse("GET", "https://API.example.org:443/v1?x=1", &server, &target, &problem), 0);
	assert_string_equal(target.origin, "/v1?x=1");
	assert_string_equal(target.forms[0], "/v1");
	target_done(&target);
	assert_int_equal(target_parse("GET", "https://api.example.org", &server, &target, &problem), 0);
	assert_string_equal(target.origin, "/");
	target_done(&target);
	assert_int_equal(target_parse("OPTIONS", "*", &server, &target, &problem), 0);
	assert_string_equal(target.forms[0], "*");
	target_done(&target);
}

static void test_hosts(void **state)
{
	static const struct target_server odd = { "api.example.org", 8443, true }, v6 = { "2001:db8::1", 443, true },
					  plain = { "api.example.org", 80, false };

	assert_true(target_host_is("api.example.org", &server));
	assert_true(target_host_is("API.Example.ORG:443", &server));
	assert_false(target_host_is("api.example.org:80", &server));
	assert_false(target_host_is("api.example.org.", &server));
	assert_false(target_host_is("", &server));
	assert_false(target_host_is("x@api.example.org", &server));
	assert_false(target_host_is("api.example.org ", &server));
	assert_false(target_host_is("api.example.org:443:443", &server));
	assert_false(target_host_is("api.example.org", &odd));
	assert_true(target_host_is("api.example.org:8443", &odd));
	assert_true(target_host_is("api.example.org", &plain));
	assert_true(target_host_is("[2001:db8::1]", &v6));
	assert_true(target_host_is("[2001:db8::1]:443", &v6));
}

/* What a policy allows must be allowed in every way in which a server can read the path. */
static void test_judged_in_every_form(void **state)
{
	static const char *const paths[] = { "/v1/**", NULL };
	static const char *const methods[] = { "POST", NULL };
	static const struct http_rule http = { .methods = methods,
					       .paths = paths,
					       .origin = { "network.allow[0].http[0]" } };
	static const uint16_t ports[] = { 443 };
	static const struct net_rule rule = { .verdict = VERDICT_ALLOW, .host = "api.example.org", .ports = ports,
					      .port_count = 1, .http = &http, .http_count = 1,
					      .origin = { "network.allow[0]" } };
	static const struct policy policy = { .network_default = VERDICT_DENY, .network = &rule, .network_count = 1,
					      .network_exact_count = 1 };
	static const char *const good[] = { "/v1/messages", "/v1/a//b", "/v1/x/../y", "/v1/%6d",
					    "https://api.example.org/v1/x" };
	static const char *const bad[] = { "/",
					   "/v2/x",
					   "/v1/../admin",
					   "/v1/%2e%2e/admin",
					   "/v1/..%2fadmin",
					   "/v1/..%5cadmin",
					   "/v1/..;/admin",
					   "/v1/%252e%252e/admin",
					   "/x/../v1/y",
					   "//v1/x",
					   "/v1/..\\admin",
					   "/V1/x" };
	struct target target;
	const char *problem, *form;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(target_parse("POST", good[i], &server, &target, &problem), 0);
		assert_int_equal(target_judge(&target, &policy, "POST", &server, &form).verdict, VERDICT_ALLOW);
		assert_int_equal(target_judge(&target, &policy, "GET", &server, &form).verdict, VERDICT_DENY);
		target_done(&target);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(target_parse("POST", bad[i], &server, &target, &problem), 0);
		if (target_judge(&target, &policy, "POST", &server, &form).verdict != VERDICT_DENY)
			fail_msg("%s was allowed", bad[i]);
		target_done(&target);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms), cmocka_unit_test(test_refused), cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_absolute_form), cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_judged_in_every_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
