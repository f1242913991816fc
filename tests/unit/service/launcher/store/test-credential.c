/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "service/launcher/store/credential.h"

static const uint8_t secret[CREDENTIAL_SECRET_SIZE] = { 1, 2, 3 };

static void a_key_has_the_form_that_clients_insist_on(void **state)
{
	char first[CREDENTIAL_KEY_SIZE], second[CREDENTIAL_KEY_SIZE];

	assert_int_equal(credential_new_key(first), 0);
	assert_int_equal(credential_new_key(second), 0);
	assert_string_not_equal(first, second);
	assert_int_equal(strlen(first), CREDENTIAL_KEY_SIZE - 1);
	assert_true(str_has_prefix(first, "e2b_") && strspn(first + 4, "0123456789abcdef") == 40);
}

static void an_id_is_a_label_of_dns(void **state)
{
	char id[CREDENTIAL_ID_SIZE];

	for (int i = 0; i < 100; i++) {
		assert_int_equal(credential_new_id(id), 0);
		assert_int_equal(strlen(id), CREDENTIAL_ID_SIZE - 1);
		assert_true(id[0] == 'i' && strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789") == strlen(id));
	}
}

static void a_token_is_of_one_server_sandbox_and_purpose(void **state)
{
	static const uint8_t other[CREDENTIAL_SECRET_SIZE] = { 1, 2, 4 };
	char token[CREDENTIAL_TOKEN_SIZE], again[CREDENTIAL_TOKEN_SIZE];

	credential_token(secret, "envd", "ia", token);
	credential_token(secret, "envd", "ia", again);
	assert_true(credential_is_equal(token, again));
	credential_token(secret, "envd", "ib", again);
	assert_false(credential_is_equal(token, again));
	credential_token(secret, "traffic", "ia", again);
	assert_false(credential_is_equal(token, again));
	credential_token(other, "envd", "ia", again);
	assert_false(credential_is_equal(token, again));
	/* A border between purpose and id that moves makes another token. */
	credential_token(secret, "env", "dia", again);
	assert_false(credential_is_equal(token, again));
}

static void nothing_equals_what_is_not_there(void **state)
{
	assert_true(credential_is_equal("", ""));
	assert_true(credential_is_equal("a", "a"));
	assert_false(credential_is_equal("a", "aa"));
	assert_false(credential_is_equal("a", ""));
	assert_false(credential_is_equal(NULL, NULL));
	assert_false(credential_is_equal("a", NULL));
}

/* As the client of E2B makes them (src/sandbox/signature.ts): computed by node of the same words. */
static void a_signature_is_that_of_the_client(void **state)
{
	struct credential_url url = { .path = "/home/user/a", .user = "user" };
	struct credential_signing signing;
	struct hash signature;

	credential_sign_begin(&signing, &url);
	assert_int_equal(
		credential_read_signature("v1_KlPD5oxDom7E6OLpTM8AOU9z2cc76SQzuDT56g1zoTM", &signature), 0);
	assert_true(credential_is_signed(&signing, "token", &signature));
	url = (struct credential_url){ .path = "a b", .user = "", .writes = true, .has_expiry = true, .expires_s = 17 };
	credential_sign_begin(&signing, &url);
	assert_false(credential_is_signed(&signing, "token", &signature));
	assert_int_equal(
		credential_read_signature("v1_FiloLJuchVpjEjyEzN2dHvX0T5VwA4srnn6MD75Xlis", &signature), 0);
	/* One beginning is for many tokens. */
	assert_false(credential_is_signed(&signing, "other", &signature));
	assert_true(credential_is_signed(&signing, "token", &signature));
}

static void a_signature_has_one_form(void **state)
{
	static const char *const wrong[] = {
		"", "v1_", "v2_KlPD5oxDom7E6OLpTM8AOU9z2cc76SQzuDT56g1zoTM",
		"v1_KlPD5oxDom7E6OLpTM8AOU9z2cc76SQzuDT56g1zoT", "v1_KlPD5oxDom7E6OLpTM8AOU9z2cc76SQzuDT56g1zoTM=",
		"v1_KlPD5oxDom7E6OLpTM8AOU9z2cc76SQzuDT56g1zoTMA", "v1_KlPD5oxDom7E6OLpTM8AOU9z2cc76SQzuDT56g1zoT!",
		"v1_KlPD5oxDom7E6OLpTM8AOU9z2cc76SQzuDT56g1zoTN",
	};
	struct hash signature;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(credential_read_signature(wrong[i], &signature), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_key_has_the_form_that_clients_insist_on),
		cmocka_unit_test(an_id_is_a_label_of_dns),
		cmocka_unit_test(a_token_is_of_one_server_sandbox_and_purpose),
		cmocka_unit_test(nothing_equals_what_is_not_there),
		cmocka_unit_test(a_signature_is_that_of_the_client),
		cmocka_unit_test(a_signature_has_one_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
