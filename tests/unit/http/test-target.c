/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "http/target.h"

static const struct target_server server = { "api.example.org", 443, true };

static void assert_path(const char *text, const char *path)
{
	struct target target;
	const char *problem = NULL;

	if (target_parse("GET", text, &server, &target, &problem) != 0)
		fail_msg("%s: %s", text, problem);
	assert_string_equal(target.path, path);
	target_done(&target);
}

static void assert_refused(const char *method, const char *text)
{
	struct target target;
	const char *problem = NULL;

	if (target_parse(method, text, &server, &target, &problem) >= 0)
		fail_msg("%s was taken as %s", text, target.readings.texts[0]);
	assert_non_null(problem);
}

static void test_paths(void **state)
{
	assert_path("/", "/");
	assert_path("/v1/messages?beta=true", "/v1/messages");
	assert_path("/v1/%6Dessages", "/v1/messages");
	assert_path("/v1/%2e%2E/x", "/v1/%2E%2E/x");
	assert_path("/@scope%2fname", "/@scope%2Fname");
	assert_path("/a%20b%C3%A4", "/a b\xc3\xa4");
	assert_path("/a%00%0d", "/a%00%0D");
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
		"/a b",
		"/a\tb",
		"/a#b",
		"/a?b#c",
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
	assert_path(text, text);
	free(text);
}

static void test_absolute_form(void **state)
{
	struct target target;
	const char *problem;

	assert_int_equal(target_parse("GET", "https://API.example.org:443/v1?x=1", &server, &target, &problem), 0);
	assert_string_equal(target.origin, "/v1?x=1");
	assert_string_equal(target.readings.texts[0], "/v1");
	target_done(&target);
	assert_int_equal(target_parse("GET", "https://api.example.org", &server, &target, &problem), 0);
	assert_string_equal(target.origin, "/");
	target_done(&target);
	assert_int_equal(target_parse("OPTIONS", "*", &server, &target, &problem), 0);
	assert_string_equal(target.readings.texts[0], "*");
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

/* ---- Judged by rules. ---- */

enum { LISTS_MAX = 4 };

/* A host with rules of one path each: those that allow, then those that deny; any method where there is none. */
struct rules {
	const char *allowed[LISTS_MAX], *denied[LISTS_MAX];
	const char *method;
	enum verdict otherwise;
};

static enum verdict judge(const struct rules *rules, const char *method, const char *text)
{
	const char *const methods[] = { rules->method, NULL };
	const struct http_rule http[] = {
		{ .methods = methods, .paths = (const char *const *)rules->allowed },
		{ .methods = methods, .paths = (const char *const *)rules->denied },
	};
	struct net_rule list[2] = { { .verdict = VERDICT_ALLOW, .host = server.host, .http = &http[0], .http_count = 1,
				      .origin = { "network.allow[0]" } },
				    { .verdict = VERDICT_DENY, .host = server.host, .http = &http[1], .http_count = 1,
				      .origin = { "network.deny[0]" } } };
	size_t count = rules->denied[0] ? 2 : 1;
	const struct policy policy = { .network = { .default_verdict = rules->otherwise, .rules = list,
						  .count = count, .exact_count = count } };
	struct action request = { .kind = ACTION_HTTP_REQUEST, .subject = server.host, .port = server.port,
				  .method = method };
	const char *problem = NULL;
	struct decision decision;
	struct target target, again;

	if (target_parse(method, text, &server, &target, &problem) < 0)
		fail_msg("%s: %s", text, problem);
	decision = target_judge(&target, &policy, &request);
	/* Who has the path alone says the same. */
	assert_int_equal(target_read(target.path, target.climbs, &again), 0);
	assert_int_equal(target_judge(&again, &policy, &request).verdict, decision.verdict);
	target_done(&again);
	target_done(&target);
	return decision.verdict;
}

static void assert_all(const struct rules *rules, const char *const *texts, enum verdict verdict)
{
	for (; *texts; texts++)
		if (judge(rules, "POST", *texts) != verdict)
			fail_msg("%s is %s", *texts, verdict == VERDICT_ALLOW ? "refused" : "let through");
}

/* What a policy allows must be allowed in every way in which a server can read the path. */
static void test_every_reading_must_be_allowed(void **state)
{
	static const struct rules rules = { .allowed = { "/v1/**" }, .method = "POST" };
	static const char *const good[] = {
		"/v1/messages", "/v1/a//b", "/v1/x/../y", "/v1/%6d", "https://api.example.org/v1/x", "/v1/group%2Fname",
		"/v1/x;a=1;b=2/y", "/v1/a%252Fb", "/v1/%EF%BC%8E", "/v1/a%3Fb%23c", "/v1/x?next=https://other/../y",
		"/v1/compare/a...b", "/v1/100%25", "/v1/a%5Cb", "/v1/%E6%96%87%E3%80%82",
		"/v1/a%3Bb%3Fc%25d%3Ae%2Ff;g%5Ch", "/v1/x?q=%0A%00..", "/v1/a./b", NULL,
	};
	static const char *const bad[] = {
		"/", "/v2/x", "/v1/../admin", "/v1/%2e%2e/admin", "/v1/..%2fadmin", "/v1/..%5cadmin", "/v1/..;/admin",
		"/v1/%252e%252e/admin", "/x/../v1/y", "//v1/x", "/v1/..\\admin", "/V1/x",
		/* Known to have reached nginx's /admin/. */
		"/v1/..%2fadmin/x%252f..%252f..%252f..%252f..%252fv1%252fy", "/v1/..%2fadmin/;/..%2fv1/y",
		/* One decoder, or a front and what is behind it. */
		"/v1/../admin/%2e%2e/../v1/y", "/v1/..;x/admin", "/v1/x/..;/..;/admin", "/v1/..%3b/admin",
		"/v1/..%253badmin/../x/..%2f..%2fadmin", "/v1/..%255cadmin", "/v1/..%25252fadmin",
		"/v1/..%2525252525252fadmin", "/v1/%c0%ae%c0%ae/admin", "/v1/..%c0%afadmin", "/v1/..%e0%80%afadmin",
		"/v1/..%f0%80%80%afadmin", "/v1/%c0%2e%c0%2e/admin", "/v1/%ef%bc%8e%ef%bc%8e/admin",
		"/v1/..%ef%bc%8fadmin", "/v1/%e2%80%a5/admin", "/v1/..%ef%bc%852fadmin", "/v1/..%25u002fadmin",
		"/v1/..%25uff0fadmin", "/v1/..%e2%84%80/../../admin", "/v1/..%20/admin",
		/* Where the path ends, or another begins, nobody knows. */
		"/v1/x%00", "/v1/x%0d%0a", "/v1/%2500", "/v1/.%09./admin",
		/* The query is taken off last. */
		"/v1/x?/../../admin", "/v1/x?a=%2f..%2f..%2fadmin", "/v1/x?\\..\\..\\admin",
		"/v1/a%3Bb%3Fc%25d%3Ae%2Ff;g%5Ch/..%2f..%2f..%2f..%2fadmin", NULL,
	};

	assert_all(&rules, good, VERDICT_ALLOW);
	assert_all(&rules, bad, VERDICT_DENY);
	assert_int_equal(judge(&rules, "GET", "/v1/messages"), VERDICT_DENY);
}

/* Where a rule is about no paths, none is refused for how it is written. */
static void test_any_path(void **state)
{
	static const struct rules any = { .method = "POST" }, all = { .allowed = { "/**" }, .method = "POST" };
	static const char *const texts[] = { "/v1/../x", "/a%2f..%2f..;/x", "/a%00b", "/%c0%ae", "//x", "/a%0d%0a",
					     "/x?/../../y", NULL };

	assert_all(&any, texts, VERDICT_ALLOW);
	assert_all(&all, texts, VERDICT_ALLOW);
	assert_int_equal(judge(&all, "GET", "/a%00b"), VERDICT_DENY);
}

/* One reading that a rule denies is enough. */
static void test_one_reading_is_denied(void **state)
{
	static const struct rules rules = { .denied = { "/admin/**", "/Key" }, .otherwise = VERDICT_ALLOW };
	static const char *const good[] = { "/", "/v1/admin", "/adm", "/v1/a%2fb", "/v1/x;a", "/v1/a//b", "/keys",
					    "/v1/%2561", NULL };
	static const char *const bad[] = {
		"/admin/x", "/admin", "/ADMIN/x", "/v1/../admin/x", "//admin/x", "/x//../admin/y", "/%61dmin/x",
		"/%2561dmin/x", "/;a/admin/x", "/admin;a/x", "/admin%2fx", "/admin%3bx/y", "/admin%3Fx", "/admin%23",
		"/\\admin/x", "//host/admin/x", "/\\host/admin/x", "/v1/x%0d%0a", "/key", "/KEY/", "/key%2f", "/key.",
		"/key%20", "/%ef%bd%81dmin/x", "/v1/x?/../../admin/y",
		"/a%3Bb%3Fc%25d%3Ae%2Ff;g%5Ch//x/..%2f;%3f", NULL,
	};

	assert_all(&rules, good, VERDICT_ALLOW);
	assert_all(&rules, bad, VERDICT_DENY);
}

/* What a rule has in it itself is read with it. */
static void test_listed_with_its_escape(void **state)
{
	static const struct rules rules = { .allowed = { "/projects/*%2F*/issues", "/@*%2F*", "/maven/*;*/x.jar",
							 "/v1/m:run" } };
	static const char *const good[] = { "/projects/group%2Fproject/issues", "/projects/group%2fproject/issues",
					    "/@scope%2fname", "/maven/a;v=1/x.jar", "/v1/m:run", NULL };
	static const char *const bad[] = { "/projects/group/project/issues", "/projects/..%2fproject/issues",
					   "/projects/a%2F..%2F../issues", "/@scope/name", "/@scope%2f..%2fname",
					   "/maven/a/x.jar", "/maven/..;v=1/x.jar", "/projects/a%252Fb/issues", NULL };

	assert_all(&rules, good, VERDICT_ALLOW);
	assert_all(&rules, bad, VERDICT_DENY);
}

static void test_asking(void **state)
{
	static const struct rules rules = { .allowed = { "/v1/**" }, .otherwise = VERDICT_ASK };

	assert_int_equal(judge(&rules, "GET", "/v1/x"), VERDICT_ALLOW);
	assert_int_equal(judge(&rules, "GET", "/v2/x"), VERDICT_ASK);
	assert_int_equal(judge(&rules, "GET", "/v1/..%2fx"), VERDICT_ASK);
	/* Nobody can say yes to what nobody can tell. */
	assert_int_equal(judge(&rules, "GET", "/v1/x%00"), VERDICT_DENY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths), cmocka_unit_test(test_refused), cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_absolute_form), cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_every_reading_must_be_allowed), cmocka_unit_test(test_any_path),
		cmocka_unit_test(test_one_reading_is_denied), cmocka_unit_test(test_listed_with_its_escape),
		cmocka_unit_test(test_asking),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
