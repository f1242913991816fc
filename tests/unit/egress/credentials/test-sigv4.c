/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sodium.h>
#include <string.h>

#include "egress/credentials/sigv4.h"
#include "egress/message/http1-head.h"

/* The keys, the time and the signatures of AWS's published test suite (aws-sig-v4-test-suite). */
static const char keys[] = "AKIDEXAMPLE:wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
static const struct inject service = { .kind = INJECT_AWS, .service = "service", .region = "us-east-1", .secret = "s" };
static const struct inject s3 = { .kind = INJECT_AWS, .service = "s3", .region = "us-east-1", .secret = "s" };
enum { NOW_S = 1440938160 };

static struct http1_head head_of(const char *method, const char *target)
{
	struct http1_head head = { .kind = HTTP1_REQUEST, .target = target, .minor = 1 };

	memcpy(head.method, method, strlen(method) + 1);
	return head;
}

static void add(struct http1_head *head, const char *name, const char *value)
{
	assert_int_equal(http1_add(head, name, value), 0);
}

static void check(struct http1_head *head, const char *signed_names, const char *signature)
{
	char wanted[512];

	assert_int_equal(sigv4_sign(head, &service, keys, "example.amazonaws.com", NOW_S), 0);
	snprintf(wanted, sizeof wanted,
		 "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
		 "SignedHeaders=%s, Signature=%s", signed_names, signature);
	assert_string_equal(http1_find(head, "authorization"), wanted);
	http1_head_reset(head);
}

static void test_the_published_vectors(void **state)
{
	static const struct {
		const char *method, *target, *signature;
	} vectors[] = {
		{ "GET", "/", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31" },
		{ "GET", "/?Param2=value2&Param1=value1",
		  "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500" },
		{ "GET", "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
		  "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f" },
		{ "GET", "/\xe1\x88\xb4", "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(vectors); i++) {
		struct http1_head head = head_of(vectors[i].method, vectors[i].target);

		check(&head, "host;x-amz-date", vectors[i].signature);
	}
}

/* What the client signed with its placeholder goes; its own date too. */
static void test_an_old_signature_goes(void **state)
{
	struct http1_head head = head_of("GET", "/");

	add(&head, "Authorization", "AWS4-HMAC-SHA256 Credential=PLACEHOLDER/x");
	add(&head, "X-Amz-Security-Token", "placeholder");
	add(&head, "X-Amz-Date", "20200101T000000Z");
	check(&head, "host;x-amz-date", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
}

static void test_bodies(void **state)
{
	struct http1_head head = head_of("PUT", "/bucket/a%20b");

	/* Of an unknown body only s3 takes a request. */
	head.framing = HTTP1_CHUNKED;
	assert_int_equal(sigv4_sign(&head, &service, keys, "h", NOW_S), -EOPNOTSUPP);
	assert_int_equal(sigv4_sign(&head, &s3, "id:key:token", "h", NOW_S), 0);
	assert_string_equal(http1_find(&head, "x-amz-content-sha256"), "UNSIGNED-PAYLOAD");
	assert_string_equal(http1_find(&head, "x-amz-security-token"), "token");
	assert_non_null(strstr(http1_find(&head, "authorization"),
			       "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,"));
	assert_int_equal(http1_set(&head, "x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"), 0);
	assert_int_equal(sigv4_sign(&head, &s3, keys, "h", NOW_S), -EOPNOTSUPP);
	head.target = "/?X-Amz-Signature=0";
	assert_int_equal(http1_set(&head, "x-amz-content-sha256", "UNSIGNED-PAYLOAD"), 0);
	assert_int_equal(sigv4_sign(&head, &s3, keys, "h", NOW_S), -EOPNOTSUPP);
	http1_head_reset(&head);
}

static void test_keys(void **state)
{
	static const char *const bad[] = { "", "id", ":key", "id:", "id::token", "id:key:" };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_non_null(sigv4_problem(bad[i]));
	assert_null(sigv4_problem("id:key"));
	assert_null(sigv4_problem("id:key:token:x"));
}

static int start(void **state)
{
	return sodium_init() < 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_published_vectors), cmocka_unit_test(test_an_old_signature_goes),
		cmocka_unit_test(test_bodies),		      cmocka_unit_test(test_keys),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
