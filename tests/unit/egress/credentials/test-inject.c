/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "egress/credentials/inject.h"

static const struct target_server server = { "api.example.org", 443, true };
static const uint16_t ports[] = { 443, 8443 };
static const char *const methods[] = { "GET", "POST", NULL };
static const char *const paths[] = { "/v1/**", "/me", NULL };

static const struct http_rule requests = { methods, paths, { "network.allow[0].http[0]", "", 0 } };
static struct net_rule rule;

/* An injection by the one rule, which the test may change further. */
static struct injection injection_of(enum inject_kind kind, const char *name, const char *secret)
{
	rule = (struct net_rule){ .verdict = VERDICT_ALLOW,
				  .host = "api.example.org",
				  .ports = ports,
				  .port_count = 2,
				  .http = &requests,
				  .http_count = 1,
				  .inject = { .kind = kind, .name = name, .secret = "s" } };
	return (struct injection){ &rule, secret };
}

/* Injects into GET text with these fields; what goes out in out. */
static int inject(const struct injection *injection, const struct target_server *to, const char *text, struct buf *out)
{
	struct http1_head head = { .kind = HTTP1_REQUEST, .method = "GET", .target = text, .minor = 1 };
	struct target target;
	const char *problem;
	char *owned;
	int r = target_parse("GET", text, to, &target, &problem);

	assert_int_equal(r, 0);
	head.target = target.origin;
	head.fields[head.field_count++] = (struct http1_field){ .name = "Host", .value = "api.example.org" };
	head.fields[head.field_count++] =
		(struct http1_field){ .name = "Authorization", .value = "Bearer placeholder" };
	r = inject_request(injection, to, &target, &head, &owned);
	http1_put_head(&head, out);
	http1_remove(&head, rule.inject.name);
	inject_free(owned);
	target_done(&target);
	return r;
}

static void check(enum inject_kind kind, const char *name, const char *secret, const char *text, const char *wanted)
{
	struct injection injection = injection_of(kind, name, secret);
	cleanup_buf struct buf out;

	buf_init(&out, 1 << 20);
	assert_int_equal(inject(&injection, &server, text, &out), INJECT_DONE);
	assert_string_equal(buf_text(&out), wanted);
}

#define HEAD(target, fields) "GET " target " HTTP/1.1\r\nHost: api.example.org\r\n" fields "\r\n"
#define OLD "Authorization: Bearer placeholder\r\n"

static void test_kinds(void **state)
{
	check(INJECT_RAW, "x-api-key", "s3", "/v1/x", HEAD("/v1/x", OLD "x-api-key: s3\r\n"));
	check(INJECT_BEARER, "authorization", "s3", "/v1/x", HEAD("/v1/x", "authorization: Bearer s3\r\n"));
	check(INJECT_BASIC, "Authorization", "user:pass", "/me", HEAD("/me", "Authorization: Basic dXNlcjpwYXNz\r\n"));
	check(INJECT_BASIC, "Authorization", "a:", "/me", HEAD("/me", "Authorization: Basic YTo=\r\n"));
	check(INJECT_BASIC, "Authorization", "a:b", "/me", HEAD("/me", "Authorization: Basic YTpi\r\n"));
	check(INJECT_BASIC, "Authorization", "a:bc", "/me", HEAD("/me", "Authorization: Basic YTpiYw==\r\n"));
	check(INJECT_QUERY, "key", "a+b/c=", "/v1/x", HEAD("/v1/x?key=a%2Bb%2Fc%3D", OLD));
	check(INJECT_QUERY, "key", "s", "/v1/x?", HEAD("/v1/x?key=s", OLD));
	check(INJECT_QUERY, "key", "s", "/v1/x?a=1&b", HEAD("/v1/x?a=1&b&key=s", OLD));
}

static void test_a_parameter_of_that_name_goes(void **state)
{
	check(INJECT_QUERY, "key", "s", "/v1/x?key=p&a=1", HEAD("/v1/x?a=1&key=s", OLD));
	check(INJECT_QUERY, "key", "s", "/v1/x?key", HEAD("/v1/x?key=s", OLD));
	check(INJECT_QUERY, "key", "s", "/v1/x?%6bey=p&keys=1", HEAD("/v1/x?keys=1&key=s", OLD));
	check(INJECT_QUERY, "key", "s", "/v1/x?a=1&key=p&b=2&k%65y=q", HEAD("/v1/x?a=1&b=2&key=s", OLD));
	check(INJECT_QUERY, "key", "s", "/v1/x?a=1;key=p&b", HEAD("/v1/x?b&key=s", OLD));
	check(INJECT_QUERY, "key", "s", "/v1/x?a=key", HEAD("/v1/x?a=key&key=s", OLD));
}

static void assert_nothing(const struct injection *injection, const struct target_server *to, const char *text)
{
	cleanup_buf struct buf out;

	buf_init(&out, 1 << 20);
	assert_int_equal(inject(injection, to, text, &out), INJECT_NOT_HERE);
	assert_null(strstr(buf_text(&out), injection->secret));
	assert_non_null(strstr(buf_text(&out), OLD));
}

static void test_only_there(void **state)
{
	static const struct target_server plain = { "api.example.org", 80, false },
					  sub = { "x.api.example.org", 443, true },
					  plain_port = { "api.example.org", 443, false },
					  port = { "api.example.org", 444, true },
					  other = { "example.org", 443, true };
	static const char *const post[] = { "POST", NULL };
	static const struct http_rule posts = { post, paths, { "h", "", 0 } };
	struct injection injection = injection_of(INJECT_RAW, "x-api-key", "S3CRET");

	assert_nothing(&injection, &plain, "/v1/x");
	assert_nothing(&injection, &plain_port, "/v1/x");
	assert_nothing(&injection, &sub, "/v1/x");
	assert_nothing(&injection, &port, "/v1/x");
	assert_nothing(&injection, &other, "/v1/x");
	assert_nothing(&injection, &server, "/v2/x");
	assert_nothing(&injection, &server, "/v1/../v2");
	assert_nothing(&injection, &server, "/v1/..%2fv2");
	assert_nothing(&injection, &server, "/v1/%2e%2e/v2");
	assert_nothing(&injection, &server, "/me/");
	rule.http = &posts;
	assert_nothing(&injection, &server, "/v1/x");
}

static void test_secrets_that_fit_nowhere(void **state)
{
	struct injection injection = injection_of(INJECT_RAW, "x", "s");

	assert_null(inject_problem(&injection));
	injection = injection_of(INJECT_RAW, "x", "a\r\nb: c");
	assert_non_null(inject_problem(&injection));
	assert_nothing(&injection, &server, "/v1/x");
	injection = injection_of(INJECT_RAW, "x", "");
	assert_non_null(inject_problem(&injection));
	injection = injection_of(INJECT_BASIC, "x", "nocolon");
	assert_non_null(inject_problem(&injection));
}

static void test_redacted(void **state)
{
	static const char *const bad[] = { "user:pa/ss", "x user:pa/ss y",
					   "Basic dXNlcjpwYS9zcw==", "https://e/?k=user%3Apa%2Fss",
					   "https://e/?k=user%3apa%2fss" };
	static const char *const good[] = { "user", "https://e/", "" };
	struct injection injection = injection_of(INJECT_BASIC, "authorization", "user:pa/ss");

	for (size_t i = 0; i < ARRAY_SIZE(bad) + ARRAY_SIZE(good); i++) {
		bool is_bad = i < ARRAY_SIZE(bad);
		struct http1_head head = { .kind = HTTP1_RESPONSE, .status = 302, .reason = "Found", .field_count = 1 };

		head.fields[0] = (struct http1_field){ .name = "Location",
						       .value = is_bad ? bad[i] : good[i - ARRAY_SIZE(bad)] };
		assert_int_equal(inject_redact(&injection, &head), is_bad);
		assert_int_equal(str_equal(head.fields[0].value, "[redacted by atoll]"), is_bad);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),	   cmocka_unit_test(test_a_parameter_of_that_name_goes),
		cmocka_unit_test(test_only_there), cmocka_unit_test(test_secrets_that_fit_nowhere),
		cmocka_unit_test(test_redacted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
