/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "notify/sign.h"

/* RFC 2104. */
static void it_is_hmac_sha256(void **state)
{
	/* printf '7.body' | openssl dgst -sha256 -hmac Jefe */
	static const char expected[] = "8cb64c6a2b005eaab54a577ddac227f54e1201470d4cec57f3fca2b8f74ae347";
	struct sign_key key = { .bytes = "Jefe", .size = 4 };
	char out[SIGN_SIZE];

	sign_request(&key, 7, "body", 4, out);
	assert_string_equal(out, expected);
}

static void an_answer_is_bound_to_its_request(void **state)
{
	struct sign_key key = { .bytes = "0123456789abcdef", .size = 16 };
	char request[SIGN_SIZE], other[SIGN_SIZE], a[SIGN_SIZE], b[SIGN_SIZE];

	sign_request(&key, 7, "body", 4, request);
	sign_request(&key, 8, "body", 4, other);
	assert_false(sign_is_same(request, other));
	sign_answer(&key, request, "yes", 3, a);
	sign_answer(&key, other, "yes", 3, b);
	assert_false(sign_is_same(a, b));
	sign_answer(&key, request, "yes", 3, b);
	assert_true(sign_is_same(a, b));
	sign_answer(&key, request, "yet", 3, b);
	assert_false(sign_is_same(a, b));
	key.bytes[15] ^= 1;
	sign_answer(&key, request, "yes", 3, b);
	assert_false(sign_is_same(a, b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_hmac_sha256),
		cmocka_unit_test(an_answer_is_bound_to_its_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
